// Parser-scratch parses a JSON document a hundred times into one arena.
//
//	go run ./examples/parser-scratch
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
)

func main() {
	if err := run(os.Stdout, 1<<20, 100); err != nil {
		fmt.Fprintln(os.Stderr, "parser-scratch:", err)
		os.Exit(1)
	}
}

// run parses a document of the given size n times.
func run(w io.Writer, size, n int) error {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	scratch := arena.New(heap, nil)
	defer scratch.Close()

	text := document(size)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start, tree := time.Now(), 0
	for range n {
		root, err := Parse(scratch, text)
		if err != nil {
			return err
		}
		if root.Kind != Array {
			return fmt.Errorf("the document is no array")
		}
		tree = scratch.Stats().LiveBytes
		scratch.Reset() // frees the tree; the next tree reuses its memory
	}
	took := time.Since(start)
	runtime.ReadMemStats(&after)

	fmt.Fprintf(w, "%d bytes of JSON, %d times, %.2f ms each; a tree takes %d bytes of the arena\n",
		len(text), n, took.Seconds()*1e3/float64(n), tree)
	fmt.Fprintf(w, "meanwhile the Go heap had %d allocations and %d collections\n", after.Mallocs-before.Mallocs, after.NumGC-before.NumGC)
	scratch.Close()
	fmt.Fprintf(w, "all freed: the heap holds %d blocks\n", heap.Stats().Live)
	return nil
}

// document returns a JSON text of at least size bytes.
func document(size int) []byte {
	var b strings.Builder
	b.WriteByte('[')
	for i := 0; i == 0 || b.Len() < size; i++ {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, `{"id": %d, "name": "small \"red\" caf\u00e9", "price": %.2f, "tags": ["left", "new"], "stock": {"here": %t, "elsewhere": null}}`,
			i, float64(i%9973)/100, i%2 == 0)
	}
	b.WriteByte(']')
	return []byte(b.String())
}
