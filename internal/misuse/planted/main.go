//go:build planted

// Command planted makes the mistake that its argument names, and reports what package track
// knows in the end. The tests of package misuse run it, and expect a report with the line that
// is marked with the name. The tag keeps it from freeholdvet, which reports some of them.
package main

import (
	"fmt"
	"os"
	"runtime"
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
	"leak": func(heap *freehold.Heap) {
		heap.Free(take(heap))
		fill(freehold.Must(heap.Alloc(100, 8))) // leak
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

func take(heap *freehold.Heap) []byte { return freehold.Must(heap.Alloc(100, 8)) }

func fill(b []byte) { b[0] = 1 }

func main() {
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "planted"})
	mistakes[os.Args[1]](heap)
	pointers, err := track.CheckPointers(heap)
	if err != nil {
		fmt.Println(err)
	}
	for _, p := range pointers {
		fmt.Println(p)
	}
	for _, u := range track.Profile() {
		if u.InUseBytes() > 0 {
			fmt.Printf("heap %q: %d bytes live, allocated at:\n", u.Heap, u.InUseBytes())
			for frames, more := runtime.CallersFrames(u.Stack), true; more; {
				var f runtime.Frame
				f, more = frames.Next()
				fmt.Printf("\t%s\n\t\t%s:%d\n", f.Function, f.File, f.Line)
			}
		}
	}
}
