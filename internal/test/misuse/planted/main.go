//go:build planted

// Command planted makes the mistake that its argument names, and has package track report in
// the end. The tests of package misuse run it, and expect a report with the line that
// is marked with the name. The tag keeps it from freeholdvet, which reports some of them.
package main

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/track"
)

var mistakes = map[string]func(heap *freehold.Heap){
	"double free": func(heap *freehold.Heap) {
		b := take(heap)
		heap.Free(b)
		heap.Free(b) // double free
	},
	"interior free": func(heap *freehold.Heap) {
		b := take(heap)
		heap.Free(b[16:]) // interior free
	},
	"use after free": func(heap *freehold.Heap) {
		b := take(heap)
		heap.Free(b)
		fmt.Println(b[8]) // use after free
	},
	"late write": func(heap *freehold.Heap) {
		b := take(heap)
		heap.Free(b) // late write
		fill(b)
		take(heap)
	},
	"overflow": func(heap *freehold.Heap) {
		b := take(heap)
		fill(unsafe.Slice(&b[0], 101)[100:]) // overflow
	},
	"overflow found by Free": func(heap *freehold.Heap) {
		b := take(heap)
		fill(unsafe.Slice(&b[0], 101)[100:])
		heap.Free(b) // overflow found by Free
	},
	"leak": func(heap *freehold.Heap) {
		heap.Free(take(heap))
		fill(freehold.Must(heap.Alloc(100, 1))) // leak
	},
	"Go pointer": func(heap *freehold.Heap) {
		b := freehold.Must(heap.Zeroed(100, 8)) // Go pointer
		*(**int)(unsafe.Pointer(&b[8])) = new(int)
	},
	"data race": func(heap *freehold.Heap) {
		b := take(heap)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for range 100 {
					b[0]++ // data race
				}
			})
		}
		wg.Wait()
	},
}

func take(heap *freehold.Heap) []byte { return freehold.Must(heap.Alloc(100, 1)) }

func fill(b []byte) { b[0] = 1 }

func main() {
	defer track.AtExit()
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "planted"})
	mistakes[os.Args[1]](heap)
	pointers, err := track.CheckPointers(heap)
	if err != nil {
		fmt.Println(err)
	}
	for _, p := range pointers {
		fmt.Println(p)
	}
}
