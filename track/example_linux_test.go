//go:build !race && !asan && !freehold_portable

package track_test

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/track"
)

// The collector does not see a pointer in a block, and frees what it points to.
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

// Guards of one block in a thousand, 100 a second at most, may stay on in production. Here each
// block has one.
func ExampleSetGuardRate() {
	was := track.SetGuardRate(1, 0)
	defer track.SetGuardRate(was, track.GuardsPerSecond)
	h := freehold.NewHeap(&freehold.HeapOptions{Name: "sessions"})
	defer h.Close()
	block := freehold.Must(h.Alloc(64, 8))
	p := unsafe.Pointer(&block[8])
	h.Free(block) // a read of *p is a fault from now on

	what, found := track.ExplainPointer(p)
	fmt.Println(found, strings.Contains(what, `byte 8 of a block of 64 bytes of heap "sessions"`))
	// Output: true true
}
