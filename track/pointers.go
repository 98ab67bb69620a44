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

// CheckPointers returns the words in h's live blocks that look like pointers into the Go
// heap, which includes the stacks of goroutines. The collector does not see such a pointer:
// what it points to may be freed and used for something else. The typed functions refuse
// types with Go pointers, but unsafe code and C can store them.
//
// Blocks of arenas, pools and buffers are parts of blocks of their heap, which are read to
// the end: a part that is free now may hold an old pointer. [freehold.Ptr], Slice and String
// refer to off-heap memory, and are not reported. Pointers to global variables are not
// reported either, as these stay where they are.
//
// Stack says where a block was allocated, if it was sampled: each block is after
// [SetSampleRate](1), or with FREEHOLD_DEBUG=profile=1.
//
// A word "looks like" a pointer if the Go heap has its address in use, or had it. A number or
// random bits may do so too: rarely where addresses have 64 bits, more often where they have
// 32. Memory that Alloc did not clear may hold an old pointer. Only words at multiples of a
// pointer's size are read, so a pointer in a packed record is missed.
//
// Other goroutines may use h meanwhile. What they write is read as it is at some moment, and
// the race detector does not report that. A block that they allocate, free or resize may be
// missed. Close and Trim of h wait, and allocations may wait while one span of small blocks or
// 256 KiB of a large block are read. It reads about as fast as BenchmarkCheckPointers says,
// and is for tests and for debugging.
//
// The error matches [errors.ErrUnsupported]: builds with the tag freehold_portable cannot
// tell. If h is closed, there are no live blocks.
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
	s.WriteString("\nallocated at:\n" + strings.TrimSuffix(stacks.Text(p.Stack, "\t"), "\n"))
	return s.String()
}
