// Pointers: words in off-heap memory that point into the Go heap.

package track

import (
	"fmt"
	"strings"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/heap"
	"github.com/freehold-go/freehold/internal/stacks"
)

// GoPointer is a word in a live block that looks like a pointer into the Go heap.
type GoPointer struct {
	Heap   string    // its name
	Block  uintptr   // its address
	Size   int       // of the block, in bytes
	Offset int       // of the word in the block, in bytes
	Word   uintptr   // its value
	Stack  []uintptr // of the block's allocation, for runtime.CallersFrames; nil unless it was sampled
}

// CheckPointers returns the words in h's live blocks that look like pointers into the Go heap,
// which includes the stacks of goroutines. The collector does not see these pointers: it may free
// the object and reuse its memory. The typed functions reject types with Go pointers, but unsafe
// code and C can store them.
//
// Arenas, pools and buffers cut their blocks from blocks of the heap, which are read to the end: a
// part that is free now may hold an old pointer. [freehold.Ptr], Slice and String refer to off-heap
// memory, and are not reported. Neither are pointers to global variables, which never move.
//
// Stack says where a block was allocated, if it was sampled. After [SetSampleRate](1), and with
// FREEHOLD_DEBUG=profile=1, each block is.
//
// A word looks like a pointer if the Go heap uses or has used its address. So may a number or
// random bits: rarely with addresses of 64 bits, more often with 32. Memory that Alloc did not
// clear may hold an old pointer. Only words at multiples of a pointer's size are read, so a pointer
// in a packed record is missed.
//
// Other goroutines may use h meanwhile. A word that they write may be read before or after, and the
// race detector does not report the read. A block that they allocate, free or resize may be missed.
// Close and Trim of h wait. An allocation may wait while one span of small blocks, or 256 KiB of a
// large block, is read. BenchmarkCheckPointers measures the speed. It is for tests and debugging.
//
// The error matches [errors.ErrUnsupported]: builds with the tag freehold_portable do not know the
// Go heap's addresses. A closed h has no live blocks.
func CheckPointers(h *freehold.Heap) ([]GoPointer, error) {
	found, err := heap.Of(h).GoPointers()
	if err != nil {
		return nil, err
	}
	name := h.Stats().Name
	var all []GoPointer
	for _, p := range found {
		all = append(all, GoPointer{name, p.Block, p.Size, p.Offset, p.Word, stacks.Outside(p.Stack)})
	}
	return all, nil
}

// String says where the word is and, if the block was sampled, where that was allocated:
//
//	heap "cache": byte 8 of the block of 64 bytes at 0x7f0e54000040: 0x1234b8a4000 looks like a pointer into the Go heap
//	allocated at:
//		main.fill
//			/src/main.go:12
func (p GoPointer) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "heap %q: byte %d of the block of %d bytes at %#x: %#x looks like a pointer into the Go heap", p.Heap, p.Offset, p.Size, p.Block, p.Word)
	if len(p.Stack) == 0 {
		return s.String()
	}
	s.WriteString("\n" + strings.TrimSuffix(stacks.At("allocated", p.Stack, "\t"), "\n"))
	return s.String()
}
