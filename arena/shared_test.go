package arena_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/internal/panics"
)

// newShared returns an arena that is closed when the test ends.
func newShared(t testing.TB, parent freehold.Allocator, o *arena.SharedOptions) *arena.Shared {
	t.Helper()
	s := arena.NewShared(parent, o)
	t.Cleanup(s.Close)
	return s
}

// newHeap returns a heap that is closed when the test ends, after the arenas.
func newHeap(t testing.TB) *freehold.Heap {
	h := freehold.NewHeap(nil)
	t.Cleanup(h.Close)
	return h
}

// mustPanic checks that call panics with a message that contains want.
func mustPanic(t *testing.T, want string, call func()) {
	t.Helper()
	panics.Want(t, "freehold: ..."+want+"...", call)
}

func TestSharedConformance(t *testing.T) {
	tests := []struct {
		name string
		o    *arena.SharedOptions
	}{
		{"Defaults", nil},
		{"SmallChunks", &arena.SharedOptions{ChunkBytes: 1000}}, // most blocks get a dedicated chunk
		{"HugePages", &arena.SharedOptions{HugePages: true}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
				return newShared(t, newHeap(t), c.o)
			}, &alloctest.Options{Concurrent: true})
		})
	}
	for _, pins := range []bool{false, true} {
		t.Run(fmt.Sprint("InGo/pins=", pins), func(t *testing.T) {
			defer arena.PlainShared(pins)()
			alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
				return newShared(t, newHeap(t), nil)
			}, &alloctest.Options{Concurrent: true})
		})
	}
	t.Run("Reserved", func(t *testing.T) {
		alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
			s := newShared(t, newHeap(t), &arena.SharedOptions{ChunkBytes: 1 << 20})
			if err := s.Reserve(3 << 20); err != nil {
				t.Fatal(err)
			}
			return s
		}, &alloctest.Options{Concurrent: true})
	})
	t.Run("PatternedParent", func(t *testing.T) {
		alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
			return newShared(t, alloctest.New(t), nil)
		}, &alloctest.Options{Concurrent: true})
	})
}

// peakParent fails the test if more than maxBytes are live, or if two goroutines call it
// at once.
type peakParent struct {
	freehold.Allocator
	t              testing.TB
	held, maxBytes int
	calls          int
	busy           atomic.Bool
}

func (p *peakParent) enter() {
	if !p.busy.CompareAndSwap(false, true) {
		p.t.Error("two goroutines call the parent at once")
	}
	p.calls++
}

func (p *peakParent) Alloc(size, align int) ([]byte, error) {
	p.enter()
	defer p.busy.Store(false)
	return p.hold(p.Allocator.Alloc(size, align))
}

func (p *peakParent) Zeroed(size, align int) ([]byte, error) {
	p.enter()
	defer p.busy.Store(false)
	return p.hold(p.Allocator.Zeroed(size, align))
}

func (p *peakParent) hold(b []byte, err error) ([]byte, error) {
	if p.held += len(b); p.held > p.maxBytes {
		p.t.Errorf("%d bytes are held from the parent, the limit is %d", p.held, p.maxBytes)
	}
	return b, err
}

func (p *peakParent) Free(b []byte) {
	p.enter()
	defer p.busy.Store(false)
	p.held -= len(b)
	p.Allocator.Free(b)
}

func TestSharedLimit(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds = 3_000
	}
	for _, maxBytes := range []int{1, 100, 5000, 64<<10 + 7, 1<<20 - 1} {
		h := newHeap(t)
		p := &peakParent{Allocator: h, t: t, maxBytes: maxBytes}
		s := newShared(t, p, &arena.SharedOptions{ChunkBytes: 4096, MaxBytes: maxBytes})
		var got, refused atomic.Int64
		var wg sync.WaitGroup
		for g := range 8 {
			r := rand.New(rand.NewPCG(1, uint64(g)))
			wg.Go(func() {
				for i := range rounds / 8 {
					size := 1 + r.IntN(300)
					if i%50 == 0 {
						size = 1 + r.IntN(9000)
					}
					alloc := s.Alloc
					if i%3 == 0 {
						alloc = s.Zeroed
					}
					guard := s.Enter()
					b, err := alloc(size, 1<<r.IntN(8))
					switch {
					case err == nil:
						got.Add(1)
						clear(b)
					case !errors.Is(err, freehold.ErrOutOfMemory):
						t.Errorf("Alloc: %v", err)
					default:
						refused.Add(1)
					}
					guard.Leave()
					if i%400 == 0 {
						s.Reset()
					}
				}
			})
		}
		wg.Wait()
		if st := s.Stats(); st.Reserved != p.held || st.Reserved > maxBytes {
			t.Errorf("%d bytes reserved, %d held from the parent, limit %d", st.Reserved, p.held, maxBytes)
		}
		if refused.Load() == 0 && maxBytes <= 5000 || got.Load() == 0 {
			t.Errorf("limit %d: %d blocks allocated, %d refused", maxBytes, got.Load(), refused.Load())
		}
		s.Close()
		if p.held != 0 {
			t.Errorf("%d bytes are held from the parent after Close", p.held)
		}
	}
}

// All of a limit can be used, by any processor, and again after Reset.
func TestSharedLimitIsUsable(t *testing.T) {
	h := newHeap(t)
	const maxBytes = 10_000
	s := newShared(t, h, &arena.SharedOptions{ChunkBytes: 4096, MaxBytes: maxBytes})
	for round := range 5 {
		for i := range maxBytes / 100 {
			size, align := 100, 1
			b, err := s.Alloc(size, align)
			if err != nil {
				// 4096 is 40 blocks and 96 bytes.
				if i < maxBytes/100-2 {
					t.Fatalf("round %d: block %d: %v", round, i, err)
				}
				break
			}
			clear(b)
			runtime.Gosched()
		}
		if _, err := s.Alloc(maxBytes+1, 1); !errors.Is(err, freehold.ErrOutOfMemory) || !strings.Contains(err.Error(), "limit of 10000") {
			t.Fatalf("more than the limit: %v", err)
		}
		s.Reset()
	}
	// A request that cannot succeed frees no spare memory. One that needs all of it frees
	// it.
	if st := s.Stats(); st.Spare == 0 {
		t.Errorf("%+v", st)
	}
	if _, err := s.Alloc(maxBytes, 1); err != nil {
		t.Error(err)
	}
}

func TestSharedReserve(t *testing.T) {
	p := &peakParent{Allocator: newHeap(t), t: t, maxBytes: 1 << 30}
	s := newShared(t, p, &arena.SharedOptions{ChunkBytes: 64 << 10})
	reserve := func(size int) {
		t.Helper()
		if err := s.Reserve(size); err != nil {
			t.Fatal(err)
		}
	}
	reserve(0)
	if p.calls != 0 {
		t.Errorf("%d calls of the parent for nothing", p.calls)
	}
	reserve(100<<10 - 5)
	reserve(1<<20 - 5)
	if st := s.Stats(); st.Reserved != 1<<20 || st.Spare != 1<<20 || st.Chunks != 16 {
		t.Errorf("%+v", st)
	}
	calls := p.calls
	for range 3 {
		for range (1 << 20) / 2 / 1000 {
			if _, err := s.Zeroed(1000, 8); err != nil {
				t.Fatal(err)
			}
		}
		s.Reset()
		reserve(1 << 20) // memory that was given up counts
	}
	if p.calls != calls {
		t.Errorf("the parent was called %d times for memory that was there", p.calls-calls)
	}
	freehold.Must(s.Alloc(1, 1))
	reserve(1 << 20) // a chunk in use does not count
	if st := s.Stats(); st.Spare != 1<<20 || st.Chunks != 17 {
		t.Errorf("%+v", st)
	}
	for _, keep := range []int{17 << 16, 16 << 16, 3<<16 - 1, 0} {
		s.TrimTo(keep)
		want := max(keep>>16, 1)
		if st := s.Stats(); st.Chunks != want || st.Spare != (want-1)<<16 || s.Reserved() != want<<16 {
			t.Errorf("after TrimTo(%d): %+v", keep, st)
		}
	}
	freehold.Must(s.Alloc(1<<20, 1)) // a dedicated chunk, which goes first
	reserve(1 << 16)
	s.Reset()
	s.TrimTo(4 << 16)
	if st := s.Stats(); st.Reserved != 2<<16 || st.Spare != st.Reserved {
		t.Errorf("after TrimTo with a dedicated chunk: %+v", st)
	}
	s.Trim()
	if st := s.Stats(); st.Spare != 0 || st.Chunks != 0 {
		t.Errorf("after Trim: %+v", st)
	}
	mustPanic(t, "arena.Shared.Reserve: size -1, want 0 or more", func() { s.Reserve(-1) })
	mustPanic(t, "arena.Shared.TrimTo: size -1, want 0 or more", func() { s.TrimTo(-1) })
	s.Close()
	mustPanic(t, "closed", func() { s.TrimTo(1) })
	mustPanic(t, "closed", func() { s.Reserve(0) })
}

// filled is a parent whose zeroed blocks are not zero: it shows which bytes the arena writes.
type filled struct{ freehold.Allocator }

func (f filled) Zeroed(size, align int) ([]byte, error) {
	b, err := f.Allocator.Zeroed(size, align)
	for i := range b {
		b[i] = 7
	}
	return b, err
}

// TestSharedReserveTouchesEachPage, wherever pages begin in a chunk.
func TestSharedReserveTouchesEachPage(t *testing.T) {
	const size, page = 10_000, 4 << 10
	s := newShared(t, filled{alloctest.New(t)}, &arena.SharedOptions{ChunkBytes: size})
	if err := s.Reserve(size); err != nil {
		t.Fatal(err)
	}
	b := freehold.Must(s.Alloc(size/4, 1))
	mem := unsafe.Slice(&b[0], size)
	for _, i := range []int{0, page, 2 * page, size - 1} {
		if mem[i] != 0 {
			t.Errorf("byte %d is not touched", i)
		}
	}
}

// TestSharedReserveRefused: the arena is unchanged.
func TestSharedReserveRefused(t *testing.T) {
	p := &peakParent{Allocator: alloctest.New(t), t: t, maxBytes: 1000}
	s := newShared(t, p, &arena.SharedOptions{ChunkBytes: 400, MaxBytes: 1000})
	freehold.Must(s.Alloc(100, 1))
	before, calls := s.Stats(), p.calls
	const want = "freehold: out of memory: 601 bytes more would exceed the arena's limit of 1000"
	if err := s.Reserve(601); !errors.Is(err, freehold.ErrOutOfMemory) || err.Error() != want || s.Stats() != before || p.calls != calls {
		t.Errorf("more than the limit: %v, %+v, %d calls of the parent", err, s.Stats(), p.calls-calls)
	}
	if err := s.Reserve(600); err != nil || s.Stats().Spare != 600 {
		t.Errorf("the limit: %v, %+v", err, s.Stats())
	}
	for n := range 4 {
		s := newShared(t, alloctest.FailAfter(alloctest.New(t), n), &arena.SharedOptions{ChunkBytes: 1000})
		if err := s.Reserve(3000); (err == nil) != (n == 3) {
			t.Errorf("with %d chunks from the parent: %v", n, err)
		}
		want := 0
		if n == 3 {
			want = 3000
		}
		if st := s.Stats(); st.Reserved != want || st.Spare != want {
			t.Errorf("with %d chunks from the parent: %+v", n, st)
		}
	}
}

func TestSharedOptions(t *testing.T) {
	h := newHeap(t)
	mustPanic(t, "arena.NewShared: SharedOptions.MaxBytes -1, want 0 or more", func() { arena.NewShared(h, &arena.SharedOptions{MaxBytes: -1}) })
	mustPanic(t, "arena.NewShared: SharedOptions.ChunkBytes -1, want 0 or more", func() { arena.NewShared(h, &arena.SharedOptions{ChunkBytes: -1}) })
}

// The parent fails after n allocations, for every n. Live blocks stay intact, and the
// arena works again once the parent does.
func TestSharedFailAfter(t *testing.T) {
	steps := []struct{ size, align int }{
		{100, 8}, {900, 1}, {200, 64}, {5000, 8}, {100, 4096}, {250, 1}, {250, 1}, {250, 1}, {250, 1}, {1, 1}, {3000, 8},
	}
	for _, failing := range []func(freehold.Allocator, int) freehold.Allocator{alloctest.FailAfter, alloctest.FailOnce} {
		for n := 0; ; n++ {
			s := newShared(t, failing(alloctest.New(t), n), &arena.SharedOptions{ChunkBytes: 1000})
			failures := 0
			for round := range 3 {
				var blocks [][]byte
				for i, step := range steps {
					alloc := s.Alloc
					if (i+round)%2 == 0 {
						alloc = s.Zeroed
					}
					before := s.Stats()
					b, err := alloc(step.size, step.align)
					if err != nil {
						failures++
						if after := s.Stats(); !errors.Is(err, freehold.ErrOutOfMemory) || b != nil || after.Live != before.Live || after.LiveBytes != before.LiveBytes {
							t.Fatalf("a failed Alloc: %v, %d bytes; %+v before, %+v after", err, len(b), before, after)
						}
						continue
					}
					if (i+round)%2 == 0 && bytes.Trim(b, "\x00") != nil && len(bytes.Trim(b, "\x00")) > 0 {
						t.Fatal("Zeroed is not zero")
					}
					for j := range b {
						b[j] = byte(i + 1)
					}
					blocks = append(blocks, b)
					if st := s.Stats(); st.Live != len(blocks) {
						t.Fatalf("%d blocks are live, Stats counts %d", len(blocks), st.Live)
					}
				}
				for _, b := range blocks {
					if bytes.Count(b, b[:1]) != len(b) {
						t.Fatal("a block has changed")
					}
				}
				s.Reset()
			}
			s.Close()
			if failures == 0 {
				break
			}
			if n > 100 {
				t.Fatal("it fails for ever")
			}
		}
	}
}

func TestSharedCounts(t *testing.T) {
	h := newHeap(t)
	s := arena.NewShared(h, nil)
	a, b := freehold.Must(s.Alloc(100, 8)), freehold.Must(s.Alloc(1<<20, 8))
	if st := s.Stats(); st.Live != 2 || st.LiveBytes != 100+1<<20 || s.Live() != 2 {
		t.Errorf("%+v", st)
	}
	b, ok := s.Resize(b, 1000)
	if !ok || len(b) != 1000 || cap(b) != 1000 {
		t.Fatalf("shrunk to %d of %d bytes: %v", len(b), cap(b), ok)
	}
	s.Free(a)
	s.Free(nil)
	s.Free([]byte{})
	if st := s.Stats(); st.Live != 1 || st.LiveBytes != 1000 {
		t.Errorf("%+v", st)
	}
	// Goroutines on any processor free them.
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				s.Free(freehold.Must(s.Alloc(10, 1)))
			}
		})
	}
	wg.Wait()
	if st := s.Stats(); st.Live != 1 || st.LiveBytes != 1000 {
		t.Errorf("%+v", st)
	}
	s.Close()
	s.Close()
	if st := s.Stats(); st != (arena.SharedStats{}) {
		t.Errorf("after Close: %+v", st)
	}

	s = arena.NewShared(h, nil)
	s.Free(freehold.Must(s.Alloc(10, 1)))
	freehold.Must(s.Alloc(10, 1))
	s.Reset()
	if n := s.Live(); n != 0 {
		t.Errorf("%d live blocks after Reset", n)
	}
	s.Close()
}

func TestSharedResizeInPlace(t *testing.T) {
	h := newHeap(t)
	s := newShared(t, h, &arena.SharedOptions{ChunkBytes: 64 << 10})
	grown := 0
	for range 10 { // the goroutine may be moved in between
		b := freehold.Must(s.Alloc(100, 8))
		if r, ok := s.Resize(b, 1000); ok {
			grown++
			if &r[0] != &b[0] || len(r) != 1000 || cap(r) != 1000 {
				t.Fatal("grown, but elsewhere or to another size")
			}
			if next := freehold.Must(s.Alloc(100, 8)); s.Owns(r) && addr(next)-addr(r) < 1000 {
				t.Fatal("the next block overlaps")
			}
			if _, ok := s.Resize(r, 2000); ok {
				t.Fatal("a block that is not the last one has grown")
			}
		}
	}
	if grown == 0 {
		t.Error("no block has grown in place")
	}
	before := s.Live()
	if s.Resize(freehold.Must(s.Alloc(100, 8)), 0); s.Live() != before {
		t.Errorf("%d blocks are live, and %d were before one that was resized to 0", s.Live(), before)
	}
	mustPanic(t, "arena.Shared.Resize: size -1, want 0 or more", func() { s.Resize(freehold.Must(s.Alloc(1, 1)), -1) })
}

func addr(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// Without guards, Resets and the same work over and over need no more memory.
func TestSharedResetReuses(t *testing.T) {
	h := newHeap(t)
	s := newShared(t, h, &arena.SharedOptions{ChunkBytes: 4096})
	work := func() {
		for i := range 100 {
			freehold.Must(s.Alloc(1+i*20%1000, 8))
		}
		freehold.Must(s.Zeroed(50_000, 8))
		s.Reset()
	}
	work()
	work()
	before := s.Stats().Reserved
	for range 200 {
		work()
	}
	// The goroutine may meet processors that had no chunk yet.
	if after := s.Stats().Reserved; after > before+4096*(runtime.GOMAXPROCS(0)+2) {
		t.Errorf("%d bytes are reserved after 2 rounds, %d after 200", before, after)
	}
}

// sharedNode is a block that the stress test links. It contains its identity.
type sharedNode struct {
	b    []byte
	mark uint64
}

func (n *sharedNode) fill() {
	for i := 0; i+8 <= len(n.b); i += 8 {
		binary.LittleEndian.PutUint64(n.b[i:], n.mark+uint64(i))
	}
}

func (n *sharedNode) intact() bool {
	for i := 0; i+8 <= len(n.b); i += 8 {
		if binary.LittleEndian.Uint64(n.b[i:]) != n.mark+uint64(i) {
			return false
		}
	}
	return true
}

// Readers under guards look blocks up and verify them while others allocate, link and
// reset, and GOMAXPROCS changes. A block that is recycled too early has another mark,
// and with -race the write is reported.
func TestSharedStress(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	rounds := 6_000
	if testing.Short() {
		rounds = 1_000
	}
	h := newHeap(t)
	s := newShared(t, h, &arena.SharedOptions{ChunkBytes: 2048})
	var (
		linking sync.RWMutex
		version int // odd during a Reset; blocks allocated in another version are not linked
		links   [64]atomic.Pointer[sharedNode]

		resetting sync.Mutex
		marks     atomic.Uint64
		stop      atomic.Bool
		found     atomic.Int64
		writers   sync.WaitGroup
		readers   sync.WaitGroup
	)
	newVersion := func(unlink bool) {
		linking.Lock()
		defer linking.Unlock()
		version++
		for i := range links {
			if unlink {
				links[i].Store(nil)
			}
		}
	}
	allocate := func(r *rand.Rand) {
		guard := s.Enter()
		defer guard.Leave()
		linking.RLock()
		before := version
		linking.RUnlock()
		var nodes []*sharedNode
		for range 8 {
			size, align := 8*(1+r.IntN(20)), 8<<r.IntN(4)
			if r.IntN(30) == 0 {
				size *= 30
			}
			alloc := s.Alloc
			if r.IntN(4) == 0 {
				alloc = s.Zeroed
			}
			n := &sharedNode{b: freehold.Must(alloc(size, align)), mark: marks.Add(1) << 32}
			n.fill()
			nodes = append(nodes, n)
		}
		linking.RLock()
		for _, n := range nodes {
			if before == version && version%2 == 0 {
				links[r.IntN(len(links))].Store(n)
			}
		}
		linking.RUnlock()
		runtime.Gosched()
		for _, n := range nodes {
			if !n.intact() {
				t.Error("a block has changed under the guard that it was allocated under")
				stop.Store(true)
			}
		}
	}
	for g := range 3 {
		r := rand.New(rand.NewPCG(2, uint64(g)))
		writers.Go(func() {
			for i := 0; i < rounds && !stop.Load(); i++ {
				allocate(r)
				switch {
				case i%7 == 0:
					resetting.Lock()
					newVersion(true)
					s.Reset()
					newVersion(false)
					resetting.Unlock()
				case i%101 == 0:
					s.TrimTo(i % 2 << 13)
				case i%211 == 0:
					runtime.GOMAXPROCS(1 + i%4)
				}
			}
		})
	}
	for g := range 3 {
		r := rand.New(rand.NewPCG(3, uint64(g)))
		readers.Go(func() {
			for !stop.Load() {
				guard := s.Enter()
				for range 4 {
					if n := links[r.IntN(len(links))].Load(); n != nil {
						runtime.Gosched()
						if !n.intact() {
							t.Error("a block that was found under a guard has changed")
							stop.Store(true)
						}
						found.Add(1)
					}
				}
				guard.Leave()
			}
		})
	}
	writers.Wait()
	stop.Store(true)
	readers.Wait()
	t.Logf("%d blocks verified by readers, %+v", found.Load(), s.Stats())
}
