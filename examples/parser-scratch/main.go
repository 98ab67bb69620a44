// Parser-scratch parses a JSON document many times, into an arena and, for
// comparison, on the Go heap.
//
//	go run ./examples/parser-scratch -bytes 4194304 -n 100
//	go run ./examples/parser-scratch -file document.json
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
)

func main() {
	file := flag.String("file", "", "JSON `document` to parse; without it one is generated")
	size := flag.Int("bytes", 1<<20, "size of a generated document in bytes, at least")
	n := flag.Int("n", 100, "parses")
	flag.Parse()
	if *n < 1 || *size < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "parser-scratch: -n and -bytes are at least 1, and it takes no arguments")
		os.Exit(2)
	}
	if err := run(os.Stdout, *file, *size, *n); err != nil {
		fmt.Fprintln(os.Stderr, "parser-scratch:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, file string, size, n int) error {
	text := generate(size)
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text = string(b)
	}

	heap := freehold.NewHeap(nil)
	defer heap.Close()
	scratch := arena.New(heap, nil)
	defer scratch.Close()
	if _, err := Parse(scratch, text); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d bytes of JSON, %d times; its tree takes %d bytes of the arena\n\n", len(text), n, scratch.Stats().LiveBytes)

	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tw, "parser\tms a parse\tMB/s\tGo allocations a parse\tcollections")
	for _, parser := range []struct {
		name  string
		parse func() error
	}{
		{"arena", func() error {
			_, err := Parse(scratch, text)
			scratch.Reset() // frees the tree; the next one reuses the memory
			return err
		}},
		{"Go heap", func() error {
			_, err := parseGo(text)
			return err
		}},
		{"encoding/json", func() error {
			var v any
			return json.Unmarshal([]byte(text), &v)
		}},
	} {
		if err := measure(tw, parser.name, len(text), n, parser.parse); err != nil {
			return err
		}
	}
	tw.Flush()

	scratch.Close()
	st := heap.Stats()
	fmt.Fprintf(w, "\nall freed: the arena is closed, and the heap holds %d blocks of %d bytes\n", st.Live, st.LiveBytes)
	return nil
}

// measure calls parse n times and prints the cost.
func measure(w io.Writer, name string, size, n int, parse func() error) error {
	if err := parse(); err != nil { // warm up
		return err
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	for range n {
		if err := parse(); err != nil {
			return err
		}
	}
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	fmt.Fprintf(w, "%s\t%.3f\t%.0f\t%.1f\t%d\n", name,
		took.Seconds()*1e3/float64(n),
		float64(size)*float64(n)/1e6/took.Seconds(),
		float64(after.Mallocs-before.Mallocs)/float64(n),
		after.NumGC-before.NumGC)
	return nil
}

// generate returns a JSON document of size bytes or slightly more, always the same.
func generate(size int) string {
	rnd := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("red green blue small large old new left right first last")
	word := func() string { return words[rnd.IntN(len(words))] }
	var b strings.Builder
	b.WriteByte('[')
	for i := 0; i == 0 || b.Len() < size; i++ {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, `{"id": %d, "name": "%s \"%s\" caf\u00e9", "price": %.2f, "tags": [%q, %q], "stock": {"here": %t, "elsewhere": null}}`,
			i, word(), word(), rnd.Float64()*100, word(), word(), rnd.IntN(2) == 0)
	}
	b.WriteByte(']')
	return b.String()
}
