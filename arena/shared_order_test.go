package arena

import (
	"errors"
	"runtime"
	gc "runtime/debug"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/epoch"
	"github.com/freehold-go/freehold/internal/pin"
)

func newSharedOver(t *testing.T, parent freehold.Allocator, o *SharedOptions) *Shared {
	t.Helper()
	s := NewShared(parent, o)
	t.Cleanup(s.Close)
	return s
}

// waits counts the Waits of a Shared's table until the test ends.
func waits(t *testing.T, s *Shared) *atomic.Int64 {
	var n atomic.Int64
	t.Cleanup(pin.OnWait(func(p *pin.Holders) {
		if p == &s.table.Holders {
			n.Add(1)
		}
	}))
	return &n
}

// TestChunksAreTakenFromTheirHoldersInTwoSteps: a goroutine holds its processor's
// chunk while another drains the table. Its block must be counted before the
// chunk has another owner.
func TestChunksAreTakenFromTheirHoldersInTwoSteps(t *testing.T) {
	calls := map[string]func(s *Shared) int{
		"Stats": func(s *Shared) int { return s.Stats().Live },
		"Trim":  func(s *Shared) int { s.Trim(); return s.live },
		"Live":  (*Shared).Live,
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
			defer gc.SetGCPercent(gc.SetGCPercent(-1)) // a collection would wait for the holder too
			runtime.GC()
			s := newSharedOver(t, alloctest.New(t), nil)
			var holds, leave, waited atomic.Bool
			blocks := 0
			defer pin.OnWait(func(p *pin.Holders) {
				if p != &s.table.Holders {
					return
				}
				for i := range s.table.Len() {
					if s.table.Value(i) != &noChunk {
						t.Error("Wait comes before the chunks are out of the table")
					}
				}
				waited.Store(true)
				leave.Store(true)
			})()
			left := make(chan struct{})
			go func() {
				defer close(left)
				for !holds.Load() {
					freehold.Must(s.Alloc(8, 8)) // installs a chunk
					blocks++
					slot := s.table.Enter()
					if c := s.at(slot); c != nil {
						holds.Store(true)
						for since := time.Now(); !leave.Load() && time.Since(since) < 10*time.Second; {
						}
						c.take(8, 8)
						blocks++
					}
					s.table.Leave(slot)
				}
			}()
			for !holds.Load() {
				runtime.Gosched()
			}
			got := call(s)
			leave.Store(true)
			<-left
			if !waited.Load() || got != blocks {
				t.Errorf("%d blocks of %d; the holders of chunks were waited for: %t", got, blocks, waited.Load())
			}
		})
	}
}

// A guardWatcher is a parent that records whether its Shared has a guard when it is
// called.
type guardWatcher struct {
	freehold.Allocator
	s              *Shared
	calls, guarded int
}

func (w *guardWatcher) Zeroed(size, align int) ([]byte, error) {
	if w.calls++; !w.s.readers.Advance().Passed() {
		w.guarded++
	}
	return w.Allocator.Zeroed(size, align)
}

// TestZeroedClearsUnderAGuard: without one, a Reset between taking and clearing a
// block could recycle its memory, and Zeroed would clobber another block.
func TestZeroedClearsUnderAGuard(t *testing.T) {
	w := &guardWatcher{Allocator: alloctest.New(t)}
	w.s = newSharedOver(t, w, &SharedOptions{ChunkBytes: 4096})
	for _, size := range []int{100, 5000} { // in a processor's chunk, and in a dedicated one
		w.calls, w.guarded = 0, 0
		freehold.Must(w.s.Zeroed(size, 8))
		if w.calls != 1 || w.guarded != 1 {
			t.Errorf("Zeroed of %d bytes: %d calls of the parent, %d of them under a guard", size, w.calls, w.guarded)
		}
	}
	if !w.s.readers.Advance().Passed() {
		t.Error("Zeroed has not left its guard")
	}
}

// TestCloseUnderAGuardPanics: it does even if no block was given up.
func TestCloseUnderAGuardPanics(t *testing.T) {
	s := newSharedOver(t, alloctest.New(t), nil)
	b := freehold.Must(s.Zeroed(100, 8))
	g := s.Enter()
	wantPanic(t, underGuard, s.Close)
	b[0] = 1
	freehold.Must(s.Alloc(100, 8)) // still works
	g.Leave()
}

const underGuard = "freehold: arena.Shared.Close: a guard is held that may protect its blocks"

// TestCloseLooksAtGuardsOfItsBlocksOnly: guards of other containers in the Domain
// do not prevent Close of an arena emptied before they were entered.
func TestCloseLooksAtGuardsOfItsBlocksOnly(t *testing.T) {
	var domain epoch.Domain
	s := newSharedOver(t, alloctest.New(t), &SharedOptions{Domain: &domain})
	freehold.Must(s.Alloc(100, 8))
	before := domain.Enter()
	s.Reset()
	wantPanic(t, underGuard, s.Close)
	after := domain.Enter()
	wantPanic(t, underGuard, s.Close)
	before.Leave()
	if n := s.Stats().Retired; n != 0 {
		t.Errorf("%d bytes are retired, and their guard has left", n)
	}
	s.Close()
	after.Leave()
}

// TestCloseKeepsNothing: Close frees all memory, without a Stats before it.
func TestCloseKeepsNothing(t *testing.T) {
	s := NewShared(alloctest.New(t), nil)
	freehold.Must(s.Alloc(100, 8))
	s.Close()
	if st := s.Stats(); st != (SharedStats{}) {
		t.Errorf("%+v", st)
	}
}

// TestARefusalKeepsSpareMemory: a refusal frees spare memory, and stops the world, only
// if that may help.
func TestARefusalKeepsSpareMemory(t *testing.T) {
	s := newSharedOver(t, alloctest.New(t), &SharedOptions{ChunkBytes: 4096, MaxBytes: 12 << 10})
	freehold.Must(s.Alloc(3000, 8))
	s.Reset()
	large := freehold.Must(s.Alloc(5000, 8)) // in use, next to 4096 spare bytes
	if st := s.Stats(); st.Spare == 0 {
		t.Fatalf("%+v", st)
	}
	s.Free(large) // counted in a slot
	waits := waits(t, s)
	if _, err := s.Alloc(12<<10+1, 8); !errors.Is(err, freehold.ErrOutOfMemory) || waits.Load() != 0 {
		t.Errorf("more than the limit: %v; %d stops of the world", err, waits.Load())
	}
	if _, err := s.Alloc(10<<10, 8); !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Errorf("more than what is not in use: %v", err)
	}
	if st := s.Stats(); st.Spare == 0 {
		t.Errorf("spare memory went for a block that could not be had: %+v", st)
	}
	freehold.Must(s.Alloc(7000, 8)) // needs the spare memory
	if st := s.Stats(); st.Spare != 0 {
		t.Errorf("%+v", st)
	}
}

// TestRefusalsStopTheWorldOnce: repeated refusals stop the world once, whatever is freed
// and allocated in between, while no processor's chunk fits. After a Reset they stop it
// again.
func TestRefusalsStopTheWorldOnce(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // two processors would take the last chunk from each other
	parents := map[string]func(t *testing.T) (freehold.Allocator, *SharedOptions){
		"the arena's limit": func(t *testing.T) (freehold.Allocator, *SharedOptions) {
			return alloctest.New(t), &SharedOptions{ChunkBytes: 4096, MaxBytes: 4096}
		},
		"the parent's limit": func(t *testing.T) (freehold.Allocator, *SharedOptions) {
			return freehold.NewLimit(alloctest.New(t), 4096), &SharedOptions{ChunkBytes: 4096}
		},
	}
	for name, of := range parents {
		t.Run(name, func(t *testing.T) {
			parent, o := of(t)
			s := newSharedOver(t, parent, o)
			freehold.Must(s.Alloc(1000, 8))
			freehold.Must(s.Alloc(1000, 8))
			waits := waits(t, s)
			for range 100 {
				if _, err := s.Alloc(2500, 8); !errors.Is(err, freehold.ErrOutOfMemory) {
					t.Fatalf("more than there is room for: %v", err)
				}
				s.Free(freehold.Must(s.Alloc(8, 8)))
				if _, err := s.Alloc(3000, 8); !errors.Is(err, freehold.ErrOutOfMemory) {
					t.Fatalf("more than there is room for: %v", err)
				}
			}
			if n := waits.Load(); n != 1 {
				t.Errorf("200 refusals stopped the world %d times, want once", n)
			}
			s.Reset()
			if _, err := s.Alloc(2500, 8); err != nil {
				t.Errorf("after Reset: %v", err)
			}
		})
	}
}

// TestFreesAreNoReasonToStopTheWorld: the entry that Free installs has no memory.
func TestFreesAreNoReasonToStopTheWorld(t *testing.T) {
	s := newSharedOver(t, alloctest.New(t), &SharedOptions{ChunkBytes: 4096, MaxBytes: 4096})
	b := freehold.Must(s.Alloc(4096, 8)) // a dedicated chunk, in no slot
	waits := waits(t, s)
	for range 100 {
		b, _ = s.Resize(b, len(b)-1)
		if _, err := s.Alloc(8, 8); !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Fatalf("beyond the limit: %v", err)
		}
	}
	if n := waits.Load(); n != 0 {
		t.Errorf("100 refusals stopped the world %d times", n)
	}
}

// An alignRecorder is a parent that records the smallest alignment requested.
type alignRecorder struct {
	freehold.Allocator
	least int
}

func (r *alignRecorder) Alloc(size, align int) ([]byte, error) {
	r.least = min(r.least, align)
	return r.Allocator.Alloc(size, align)
}

// TestSharedChunksAreAligned: to cache lines, against false sharing, and to huge pages.
func TestSharedChunksAreAligned(t *testing.T) {
	for _, c := range []struct {
		o    SharedOptions
		want int
	}{
		{SharedOptions{ChunkBytes: 1000}, 64},
		{SharedOptions{HugePages: true}, 2 << 20},
		{SharedOptions{HugePages: true, ChunkBytes: 3 << 20}, 64},
	} {
		heap := freehold.NewHeap(nil)
		r := &alignRecorder{heap, 1 << 30}
		s := NewShared(r, &c.o)
		freehold.Must(s.Alloc(1, 1))
		if r.least != c.want {
			t.Errorf("%+v: chunks at multiples of %d, want %d", c.o, r.least, c.want)
		}
		s.Close()
		heap.Close()
	}
}

// TestChunksOfOtherProcessorsAreFound: if the parent refuses, Alloc uses another
// processor's chunk: one with free bytes, and one that a Reset has given up.
func TestChunksOfOtherProcessorsAreFound(t *testing.T) {
	for _, reset := range []bool{false, true} {
		s := newSharedOver(t, alloctest.FailAfter(alloctest.New(t), 1), &SharedOptions{ChunkBytes: 4096})
		freehold.Must(s.Alloc(1000, 8))
		if reset {
			s.Reset()
		}
		s.mu.Lock()
		for i := range s.table.Len() { // the goroutine has moved on
			if c := s.table.Take(i); c != &noChunk {
				s.install((i+1)%s.table.Len(), c)
				break
			}
		}
		s.mu.Unlock()
		if _, err := s.Alloc(1000, 8); err != nil {
			t.Errorf("after Reset %t: %v", reset, err)
		}
		if st := s.Stats(); st.Chunks != 1 {
			t.Errorf("after Reset %t: %+v", reset, st)
		}
	}
}

// mustHoldEachChunkOnce checks that each chunk with memory is in one slot or on one list.
func (s *Shared) mustHoldEachChunkOnce(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := map[*sharedChunk]int{}
	s.table.Each(func(c *sharedChunk) { n[c]++ })
	lists := [][]*sharedChunk{s.full, s.partial.all(), slices.Collect(s.retired.All()), s.spare.all(), s.spareDedicated.all()}
	for _, list := range lists {
		for _, c := range list {
			n[c]++
		}
	}
	for _, c := range s.chunks {
		if n[c] != 1 {
			t.Errorf("a chunk of %d bytes is in %d lists", len(c.mem), n[c])
		}
	}
}

// TestFreeAfterResetKeepsTheChunk: a Free replaces a chunk that Reset has
// given up.
func TestFreeAfterResetKeepsTheChunk(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that both are in one slot
	s := newSharedOver(t, alloctest.New(t), nil)
	b := freehold.Must(s.Alloc(8, 8))
	s.Reset()
	s.Free(b)
	s.mustHoldEachChunkOnce(t)
}

// TestChunkThatWasNotNeededIsKept: while a chunk is taken for a block, the slot gets
// another that fits it.
func TestChunkThatWasNotNeededIsKept(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that both are in one slot
	s := newSharedOver(t, alloctest.New(t), nil)
	for range 2 {
		s.mu.Lock()
		c := freehold.Must(s.grow(8, 8, false, false))
		c.generation = s.generation.Load()
		b := s.takeLocal(8, 8, c)
		s.mu.Unlock()
		if b == nil {
			t.Error("no block")
		}
	}
	s.mustHoldEachChunkOnce(t)
}

// TestAllocTakesWhatGuardsHaveLeft: Alloc recycles chunks that a guard protected
// at Reset before it asks the parent for more.
func TestAllocTakesWhatGuardsHaveLeft(t *testing.T) {
	s := newSharedOver(t, alloctest.New(t), &SharedOptions{ChunkBytes: 4096})
	g := s.Enter()
	for range 40 {
		freehold.Must(s.Alloc(1000, 8))
	}
	s.Reset()
	g.Leave()
	before := s.reserved
	freehold.Must(s.Alloc(1000, 8))
	if s.reserved != before {
		t.Errorf("%d bytes more from the parent beside %d that nobody sees", s.reserved-before, before)
	}
}

// deadParent is a parent that fails once it is dead.
type deadParent struct {
	freehold.Allocator
	dead bool
}

func (p *deadParent) Alloc(size, align int) ([]byte, error) {
	if p.dead {
		return nil, freehold.ErrOutOfMemory
	}
	return p.Allocator.Alloc(size, align)
}

// TestSmallBlockFromALargeOnesChunk: if the parent fails, a dedicated chunk serves
// small blocks.
func TestSmallBlockFromALargeOnesChunk(t *testing.T) {
	parent := &deadParent{Allocator: alloctest.New(t)}
	s := newSharedOver(t, parent, &SharedOptions{ChunkBytes: 4096})
	freehold.Must(s.Alloc(100000, 8))
	s.Reset()
	parent.dead = true
	if _, err := s.Alloc(8, 8); err != nil {
		t.Error(err)
	}
}
