package metrics_test

import (
	"fmt"
	"os"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/metrics"
	"github.com/freehold-go/freehold/pool"
)

func ExampleCaches() {
	sessions := cache.New(freehold.Default(), &cache.Options{Name: "sessions", MaxBytes: 1 << 20, TTL: time.Hour})
	defer sessions.Close()

	if err := sessions.Set([]byte("alice"), []byte("{}")); err != nil {
		fmt.Println(err)
		return
	}
	sessions.Get(nil, []byte("alice"))
	sessions.Get(nil, []byte("bob"))
	for _, st := range metrics.Caches() {
		fmt.Printf("%s: %d entries, %.0f%% hits, %d dropped for room\n", st.Name, st.Len, 100*float64(st.Hits)/float64(st.Hits+st.Misses), st.Evicted)
	}
	// Output: sessions: 1 entries, 50% hits, 0 dropped for room
}

// The exporters publish the memory of a pool as a tag's.
func Example_pool() {
	orders := pool.New[[64]byte](freehold.NewTagged(freehold.Default(), "orders"), nil)
	defer orders.Close()

	freehold.Must(orders.Get())
	for _, st := range freehold.AllTags() {
		if st.Tag == "orders" {
			fmt.Println(st.LiveBytes > 0, st.LiveBytes == orders.Stats().Reserved)
		}
	}
	// Output: true true
}

// An exporter for a new monitoring system: each list gives the name, the unit and the kind of
// each figure.
func ExampleFigure() {
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "index"})
	defer heap.Close()
	freehold.Must(heap.Alloc(64, 8))

	for _, st := range metrics.ByName() {
		for _, f := range metrics.HeapFigures[:2] {
			if st.Name == "index" {
				fmt.Fprintf(os.Stdout, "heap.%s,name=%s %d %s\n", f.Name, st.Name, f.Value(&st), f.Unit)
			}
		}
	}
	// Output:
	// heap.live,name=index 64 By
	// heap.live_blocks,name=index 1 {block}
}
