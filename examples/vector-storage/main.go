// Vector-storage keeps a million embeddings off-heap and searches them, and
// then does the same on the Go heap.
//
//	go run ./examples/vector-storage
//	go run ./examples/vector-storage -n 100000 -dim 768 -k 5 -queries 50
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/freehold-go/freehold"
)

type options struct{ n, dim, k, queries int }

func main() {
	var o options
	flag.IntVar(&o.n, "n", 1_000_000, "vectors")
	flag.IntVar(&o.dim, "dim", 384, "numbers in a vector")
	flag.IntVar(&o.k, "k", 10, "hits of a search")
	flag.IntVar(&o.queries, "queries", 10, "searches")
	flag.Parse()
	if o.n < 1 || o.dim < 1 || o.k < 1 || o.queries < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "vector-storage: all numbers are at least 1, and it takes no arguments")
		os.Exit(2)
	}
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "vector-storage:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, o options) error {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	store, err := NewStore(heap, o.dim)
	if err != nil {
		return err
	}
	defer store.Free()

	fmt.Fprintf(w, "%d vectors of %d numbers, %.2f GB; the best %d in %d searches\n\n",
		o.n, o.dim, float64(o.n)*float64(o.dim)*4/1e9, o.k, o.queries)
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tw, "memory\tadd all, s\tcollections meanwhile\tone collection, ms\tits pauses, ms\tsearch p50, ms\tslowest, ms")
	found, err := measure(tw, "off-heap", store, o)
	if err != nil {
		return err
	}
	off := heap.Stats()
	store.Free() // make room for the Go heap
	heap.Trim()

	foundGo, err := measure(tw, "Go heap", &goStore{dim: o.dim}, o)
	if err != nil {
		return err
	}
	tw.Flush()
	if !slices.Equal(found, foundGo) {
		return fmt.Errorf("the stores found different vectors: %v and %v", found, foundGo)
	}
	st := heap.Stats()
	fmt.Fprintf(w, "\nboth found the same; %d blocks of %.2f GB are freed: the heap holds %d blocks of %d bytes\n",
		off.Live, float64(off.LiveBytes)/1e9, st.Live, st.LiveBytes)
	return nil
}

// measure fills a store, searches it, prints the cost, and returns the indices of
// the hits.
func measure(w io.Writer, name string, s interface {
	Add(id uint64, title string, vector []float32) error
	Search(query []float32, k int) ([]Hit, error)
}, o options) (found []int, err error) {
	rnd := rand.New(rand.NewPCG(1, 2))
	vector := make([]float32, o.dim)
	random := func() {
		for i := range vector {
			vector[i] = rnd.Float32() - 0.5
		}
	}

	progress := newProgress(os.Stderr, name)
	defer progress.clear()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	for i := range o.n {
		random()
		if err := s.Add(uint64(i), fmt.Sprintf("document %d", i), vector); err != nil {
			return nil, err
		}
		progress.show(i, o.n)
	}
	filled := time.Since(start)
	runtime.ReadMemStats(&after)

	took, pauses := collect()
	latencies := make([]time.Duration, o.queries)
	for i := range latencies {
		random()
		start := time.Now()
		hits, err := s.Search(vector, o.k)
		if err != nil {
			return nil, err
		}
		latencies[i] = time.Since(start)
		for _, h := range hits {
			found = append(found, h.Index)
		}
	}
	runtime.KeepAlive(s)
	slices.Sort(latencies)
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
	fmt.Fprintf(w, "%s\t%.1f\t%d\t%.2f\t%.3f\t%.1f\t%.1f\n", name, filled.Seconds(), after.NumGC-before.NumGC,
		ms(took), ms(pauses), ms(latencies[len(latencies)/2]), ms(latencies[len(latencies)-1]))
	return found, nil
}

// collect returns the time of a collection and its stop-the-world time, each the
// median of five.
func collect() (took, pauses time.Duration) {
	const rounds = 5
	runtime.GC() // collect earlier garbage first
	var all, stopped [rounds]time.Duration
	for i := range rounds {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		runtime.GC()
		all[i] = time.Since(start)
		runtime.ReadMemStats(&after)
		stopped[i] = time.Duration(after.PauseTotalNs - before.PauseTotalNs)
	}
	slices.Sort(all[:])
	slices.Sort(stopped[:])
	return all[rounds/2], stopped[rounds/2]
}
