package soak

import (
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/pool"
)

var (
	callsFlag = flag.Int("calls", 300_000, "number of calls, of all allocators together")
	seedFlag  = flag.Uint64("seed", 1, "seed of the programs; 0 chooses a new one for each run")
)

// goHeap is the reference: Go memory, freed by the collector.
type goHeap struct{}

func (goHeap) Alloc(size, align int) ([]byte, error)    { return make([]byte, size), nil }
func (goHeap) Zeroed(size, align int) ([]byte, error)   { return make([]byte, size), nil }
func (goHeap) Resize(b []byte, size int) ([]byte, bool) { return nil, false }
func (goHeap) Free(b []byte)                            {}

// A backend is an allocator to test. If concurrent, several programs may use it at once.
type backend struct {
	name       string
	concurrent bool
	open       func(heap *freehold.Heap) (join func() user, close func())
}

// A user is one program's view of a backend: an allocator, a function to call between two
// rounds, when the program has no live block, and one to call at the end.
type user struct {
	freehold.Allocator
	between, leave func()
}

func nothing() {}

// common returns a backend's functions for one allocator that all programs share.
func common(a freehold.Allocator, between, close func()) (join func() user, _ func()) {
	return func() user { return user{a, between, nothing} }, close
}

var backends = []backend{
	{"the Go heap, for reference", true, func(*freehold.Heap) (func() user, func()) {
		return common(goHeap{}, nothing, nothing)
	}},
	{"Heap", true, func(h *freehold.Heap) (func() user, func()) {
		return common(h, nothing, nothing)
	}},
	{"Heap, trimmed all the time", true, func(h *freehold.Heap) (func() user, func()) {
		return common(h, h.Trim, nothing)
	}},
	{"Pages", true, func(*freehold.Heap) (func() user, func()) {
		return common(freehold.Pages(), nothing, nothing)
	}},
	{"Arena", true, func(h *freehold.Heap) (func() user, func()) {
		return func() user { a := arena.New(h, nil); return user{a, a.Reset, a.Close} }, nothing
	}},
	{"Arena with small chunks", true, func(h *freehold.Heap) (func() user, func()) {
		return func() user {
			a := arena.New(h, &arena.Options{ChunkBytes: 100, MaxChunkBytes: 8 << 10})
			return user{a, func() { a.Reset(); a.TrimTo(1 << 20) }, a.Close}
		}, nothing
	}},
	{"Arenas of a Recycler", true, func(h *freehold.Heap) (func() user, func()) {
		r := arena.NewRecycler(h, nil)
		return func() user {
			a := &exchanged{freehold.Must(r.Get(0))}
			next := func() { r.Put(a.Arena); a.Arena = freehold.Must(r.Get(5000)) }
			return user{a, next, func() { r.Put(a.Arena) }}
		}, r.Close
	}},
	{"Shared", false, func(h *freehold.Heap) (func() user, func()) {
		s := arena.NewShared(h, nil)
		return common(s, s.Reset, s.Close)
	}},
	{"Shared, under guards", true, func(h *freehold.Heap) (func() user, func()) {
		s := arena.NewShared(h, &arena.SharedOptions{ChunkBytes: 64 << 10})
		return func() user {
			g := s.Enter()
			return user{s, func() { g.Leave(); s.Reset(); g = s.Enter() }, func() { g.Leave() }}
		}, s.Close
	}},
	{"Blocks, and a Heap for what is larger", true, func(h *freehold.Heap) (func() user, func()) {
		p := pool.NewBlocks(freehold.Pages(), 256, 16, nil)
		return common(freehold.NewFallback(p, h), nothing, p.Close)
	}},
	{"Tagged twice", true, func(h *freehold.Heap) (func() user, func()) {
		return common(freehold.NewTagged(freehold.NewTagged(h, "soak"), "inner"), nothing, nothing)
	}},
	{"Locked, Tagged and Limit", true, func(h *freehold.Heap) (func() user, func()) {
		return common(freehold.NewLocked(freehold.NewTagged(freehold.NewLimit(h, 1<<30), "")), nothing, nothing)
	}},
}

// exchanged is an arena that is replaced by another from time to time.
type exchanged struct{ *arena.Arena }

// Every allocator returns the same bytes to the same program.
func TestSameBytesEverywhere(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	const programs = 2
	calls := *callsFlag / len(backends) / programs
	if testing.Short() {
		calls = min(calls, 2000)
	}
	t.Logf("seed %d, %d programs of %d calls each on %d allocators", seed, programs, calls, len(backends))
	var want [programs]uint64
	for i, b := range backends {
		start := time.Now()
		got := b.run(t, seed, calls, programs)
		if t.Failed() {
			t.Fatalf("%s: go test ./internal/test/soak -seed %d -calls %d", b.name, seed, *callsFlag)
		}
		if i == 0 {
			copy(want[:], got)
		}
		for n := range programs {
			if got[n] != want[n] {
				t.Errorf("%s: program %d gives other bytes than on %s", b.name, n, backends[0].name)
			}
		}
		t.Logf("%-40s %6.1f s", b.name, time.Since(start).Seconds())
	}
}

// run runs the programs, concurrently if the backend allows it, and returns their digests. It
// checks that no memory is in use in the end.
func (b *backend) run(t *testing.T, seed uint64, calls, programs int) []uint64 {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	join, end := b.open(heap)
	digests := make([]uint64, programs)
	one := func(n int) {
		u := join()
		var err error
		if digests[n], err = run(u, seed+uint64(n), calls, u.between); err != nil {
			t.Errorf("%s, program %d: %v", b.name, n, err)
			return
		}
		u.leave()
	}
	var wg sync.WaitGroup
	for n := range programs {
		if b.concurrent {
			wg.Go(func() { one(n) })
		} else {
			one(n)
		}
	}
	wg.Wait()
	if t.Failed() {
		return digests
	}
	end()
	if st := heap.Stats(); st.Live != 0 || st.LiveBytes != 0 {
		t.Errorf("%s: %d blocks of %d bytes are in use at the end", b.name, st.Live, st.LiveBytes)
	}
	return digests
}

// faulty is an allocator with one defect.
type faulty struct {
	goHeap
	defect string
	last   []byte
}

func (f *faulty) Alloc(size, align int) ([]byte, error) {
	b := make([]byte, size)
	if f.defect == "a block is handed out twice" && len(f.last) >= size {
		b = f.last[:size:size]
	}
	f.last = b
	return b, nil
}

func (f *faulty) Zeroed(size, align int) ([]byte, error) {
	b, err := f.goHeap.Zeroed(size, align)
	if f.defect == "the last byte is not zero" && size > 0 {
		b[size-1] = 1
	}
	return b, err
}

func (f *faulty) Resize(b []byte, size int) ([]byte, bool) {
	if f.defect == "Resize loses what was there" {
		return make([]byte, size), true
	}
	return nil, false
}

// Each defect is found, and an allocator without one passes.
func TestDefectsAreFound(t *testing.T) {
	for _, defect := range []string{"", "a block is handed out twice", "the last byte is not zero", "Resize loses what was there"} {
		if _, err := run(&faulty{defect: defect}, 1, 3000, nothing); (err == nil) != (defect == "") {
			t.Errorf("%q: %v", defect, err)
		}
	}
}

// The digest depends only on the seed.
func TestDigestIsOfTheProgram(t *testing.T) {
	digest := func(seed uint64) uint64 {
		d, err := run(goHeap{}, seed, 3000, nothing)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	//lint:ignore SA4000 two runs are compared
	if digest(1) != digest(1) || digest(1) == digest(2) {
		t.Error("one seed gives two digests, or two give one")
	}
}
