//go:build !race && !asan && !freehold_portable

package track_test

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/track"
)

// The collector does not see pointers in blocks, so it may free their targets.
func ExampleCheckPointers() {
	h := freehold.NewHeap(&freehold.HeapOptions{Name: "index"})
	defer h.Close()
	block := freehold.Must(h.Alloc(64, 8))
	defer h.Free(block)
	*(**[64]int)(unsafe.Pointer(&block[16])) = new([64]int) // a mistake

	found, err := track.CheckPointers(h)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range found {
		fmt.Printf("heap %s: byte %d of a block of %d bytes\n", p.Heap, p.Offset, p.Size)
	}
	// Output: heap index: byte 16 of a block of 64 bytes
}

// Guards of one block in a thousand, at most 100 a second, may stay on in production. This
// example guards every block.
func ExampleSetGuardRate() {
	was := track.SetGuardRate(1, 0)
	defer track.SetGuardRate(was, 500)
	h := freehold.NewHeap(&freehold.HeapOptions{Name: "sessions"})
	defer h.Close()
	block := freehold.Must(h.Alloc(64, 8))
	p := unsafe.Pointer(&block[8])
	h.Free(block) // a read of *p now faults

	what, found := track.ExplainPointer(p)
	fmt.Println(found, strings.Contains(what, `byte 8 of a block of 64 bytes of heap "sessions"`))
	// Output: true true
}
