// Vector-storage keeps a million embeddings off-heap and searches them.
//
//	go run ./examples/vector-storage              # 1.8 GB
//	go run ./examples/vector-storage -n 100000
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"time"

	"github.com/freehold-go/freehold"
)

func main() {
	n := flag.Int("n", 1_000_000, "number of vectors")
	flag.Parse()
	if *n < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "vector-storage: -n must be more than 0, and there are no arguments beside flags")
		os.Exit(2)
	}
	if err := run(os.Stdout, *n); err != nil {
		fmt.Fprintln(os.Stderr, "vector-storage:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, n int) error {
	const dim = 384
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	store := NewStore(heap, dim)
	defer store.Free()

	start := time.Now()
	random := rand.New(rand.NewPCG(1, 2))
	vector := make([]float32, dim)
	for i := range n {
		fill(vector, random)
		if err := store.Add(uint64(i), fmt.Sprintf("document %d", i), vector); err != nil {
			return err
		}
	}
	st := heap.Stats()
	fmt.Fprintf(w, "%d vectors in %.1f s: %.2f GB in %d blocks\n", n, time.Since(start).Seconds(), float64(st.LiveBytes)/1e9, st.Live)

	start = time.Now()
	runtime.GC()
	fmt.Fprintf(w, "a collection beside them takes %.1f ms\n", time.Since(start).Seconds()*1e3)

	start = time.Now()
	hits, err := store.Search(vector, 3)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "a search takes %.0f ms; closest to the last vector:\n", time.Since(start).Seconds()*1e3)
	for _, h := range hits {
		fmt.Fprintf(w, "  %.3f  %s\n", h.Score, h.Title)
	}
	store.Free()
	fmt.Fprintf(w, "all freed: the heap holds %d blocks\n", heap.Stats().Live)
	return nil
}

// fill sets a vector to random numbers.
func fill(vector []float32, random *rand.Rand) {
	for i := range vector {
		vector[i] = random.Float32() - 0.5
	}
}
