// Cache runs an LRU cache under a hard memory limit, with its values off-heap and
// then on the Go heap.
//
//	go run ./examples/cache
//	go run ./examples/cache -mib 1024 -value 16384
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
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

type options struct{ mib, value, rounds int }

func main() {
	var o options
	flag.IntVar(&o.mib, "mib", 256, "MiB that the cache may have")
	flag.IntVar(&o.value, "value", 1024, "bytes of the largest value")
	flag.IntVar(&o.rounds, "rounds", 2_000_000, "look-ups, once the cache is full")
	flag.Parse()
	if o.mib < 1 || o.value < minValue || o.value > o.mib<<20/8 || o.rounds < 1 || flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "cache: -mib and -rounds are at least 1, -value is from %d to an eighth of -mib, and it takes no arguments\n", minValue)
		os.Exit(2)
	}
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "cache:", err)
		os.Exit(1)
	}
}

const minValue = 16

func run(w io.Writer, o options) error {
	limit := o.mib << 20
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "cache", MaxBytes: limit})
	defer heap.Close()
	cache := NewCache(heap, limit/8)

	fmt.Fprintf(w, "values of %d to %d bytes in %d MiB; %d look-ups, and a put for each that finds nothing\n\n", minValue, o.value, o.mib, o.rounds)
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tw, "memory\tvalues kept\thits, %\ta look-up, ns\tcollections meanwhile\tone collection, ms\tmemory in all, MiB")
	if err := measure(tw, "off-heap", cache, heap, o); err != nil {
		return err
	}
	most := heap.Stats().Committed
	cache.Close()
	heap.Trim()
	st := heap.Stats()
	if err := measure(tw, "Go heap", newGoCache(limit), heap, o); err != nil {
		return err
	}
	tw.Flush()
	fmt.Fprintf(w, "\nall hits were right; the heap held %.1f MiB of %d, and now %d blocks of %d bytes\n",
		float64(most)/(1<<20), o.mib, st.Live, st.LiveBytes)
	return nil
}

// measure fills a cache, uses it, and prints the cost.
func measure(w io.Writer, name string, c interface {
	Get(key uint64, dst []byte) ([]byte, bool)
	Put(key uint64, value []byte) error
	Len() int
}, heap *freehold.Heap, o options) error {
	keys := uint64(2 * (o.mib << 20) / ((minValue + o.value) / 2)) // half of them fit
	rnd := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, o.value)
	var found []byte
	use := func(key uint64) (hit bool, err error) {
		want := fill(value, key)
		if found, hit = c.Get(key, found[:0]); hit {
			if !bytes.Equal(found, want) {
				return true, fmt.Errorf("%s: the value of key %d is wrong", name, key)
			}
			return true, nil
		}
		return false, c.Put(key, want)
	}
	for key := range keys {
		if _, err := use(key); err != nil {
			return err
		}
	}

	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start, hits, refused := time.Now(), 0, 0
	for range o.rounds {
		switch hit, err := use(rnd.Uint64N(keys)); {
		case errors.Is(err, freehold.ErrOutOfMemory):
			refused++ // the cache continues without the value
		case err != nil:
			return err
		case hit:
			hits++
		}
	}
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	memory := heap.Stats().Committed + int(after.Sys-after.HeapReleased)
	fmt.Fprintf(w, "%s\t%d\t%.1f\t%.0f\t%d\t%.2f\t%.1f\n", name, c.Len(), 100*float64(hits)/float64(o.rounds),
		float64(took.Nanoseconds())/float64(o.rounds), after.NumGC-before.NumGC, collect().Seconds()*1e3, float64(memory)/(1<<20))
	if refused > 0 {
		fmt.Fprintf(w, "\t%d values found no room\n", refused)
	}
	runtime.KeepAlive(c)
	return nil
}

// fill returns key's value, in b, with a length between minValue and len(b).
func fill(b []byte, key uint64) []byte {
	x := (key + 1) * 0x9e3779b97f4a7c15
	v := b[:minValue+x>>32%uint64(len(b)-minValue+1)]
	clear(v)
	binary.LittleEndian.PutUint64(v, x)
	binary.LittleEndian.PutUint64(v[len(v)-8:], ^x)
	return v
}

// collect returns the time of a collection, the median of five.
func collect() time.Duration {
	const rounds = 5
	runtime.GC() // collect earlier garbage first
	var all [rounds]time.Duration
	for i := range rounds {
		start := time.Now()
		runtime.GC()
		all[i] = time.Since(start)
	}
	slices.Sort(all[:])
	return all[rounds/2]
}
