// Kept runs: the runs that a cache keeps, the blocks that they serve, and their end.

package heap

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/test/runs"
	"github.com/freehold-go/freehold/internal/vm"
)

// allocOn allocates from o, whose runs are known.
func allocOn(t testing.TB, o *processor, size, align int, zero bool) []byte {
	t.Helper()
	b, err := o.Alloc(size, align, zero)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// keeping returns a cache of h that keeps runs of those sizes.
func keeping(t testing.TB, h *Heap, sizes ...int) *processor {
	t.Helper()
	o := newProcessor(h)
	o.Free(allocOn(t, o, 128<<10, 1, false)) // makes the cache
	var all [][]byte
	for _, size := range sizes {
		all = append(all, allocOn(t, o, size, 1, false))
	}
	for _, b := range all {
		fill(b, 7)
		o.Free(b)
	}
	h.check(t)
	return o
}

func (o *processor) kept() pages.LargeCount { return o.cache().runs.count() }

func TestRunServesTheNextBlockOfItsLength(t *testing.T) {
	for _, size := range []int{small.MaxSize + 1, 64 << 10, 256 << 10, 1 << 20} {
		n := vm.RoundUp(uintptr(size), pages.PageBytes)
		for _, tt := range []struct {
			name        string
			size, align int
			kept        bool
		}{
			{"equal", size, 1, true},
			{"a page whole", int(n), pages.PageBytes, true},
			{"a page more", int(n) + 1, 1, false},
			{"128 pages more", int(n) + maxKeptPages*pages.PageBytes, 1, false},
			{"a multiple of more than a page", size, 2 * pages.PageBytes, false},
		} {
			h := newHeap(t, Options{})
			o := keeping(t, h, size)
			before := h.Stats()
			if kept := o.kept(); before.LargeBlocks != 0 || before.Allocated != 0 || kept.Blocks != 1 || kept.Bytes != n {
				t.Errorf("%d bytes: %+v; the cache has %+v", size, before, kept)
			}
			b := allocOn(t, o, tt.size, tt.align, true)
			if !allSet(b, 0) || len(b) != tt.size || small.AddrOf(b)%uintptr(tt.align) != 0 {
				t.Errorf("%d bytes, %s: %d bytes at %#x", size, tt.name, len(b), small.AddrOf(b))
			}
			if taken := o.kept().Blocks == 0; taken != tt.kept {
				t.Errorf("%d bytes, %s: the run was taken: %v", size, tt.name, taken)
			}
			if st := h.Stats(); st.LargeBlocks != 1 || tt.kept && st.SlowAllocs != before.SlowAllocs {
				t.Errorf("%d bytes, %s: %+v", size, tt.name, st)
			}
			h.check(t)
			o.Free(b)
			o.Close()
		}
	}
}

// A cache that keeps runs of random lengths, beside a model of its stacks. The newest run is kept if
// it is not too long for any. A full cache evicts runs of the new one's length first. Then it evicts
// others, one by one, until an eighth is free.
func TestLargeCacheLikeAModel(t *testing.T) {
	h := newHeap(t, Options{})
	for seed, bounds := range [][2]uintptr{{64, 128}, {64, 32}, {100, 100}, {8, 128}, {0, 0}} {
		l := keptRuns{mostHeld: bounds[0], longest: bounds[1]}
		r := rand.New(rand.NewPCG(uint64(seed), 0))
		lengths := []uintptr{1, 5, 8, 9, 33, 128}
		model := map[uintptr][]*pages.Span{}
		held := uintptr(0)
		for step := range 2000 {
			n := lengths[r.IntN(len(lengths))]
			stack := model[n]
			if r.IntN(3) == 0 { // Alloc
				s := l.find(n*pages.PageBytes, 1)
				if l.find((n+maxKeptPages)*pages.PageBytes, 1) != nil {
					t.Fatalf("seed %d, step %d: found a run of %d pages for %d more", seed, step, n, maxKeptPages)
				}
				if (s == nil) != (len(stack) == 0) || s != nil && s != stack[len(stack)-1] {
					t.Fatalf("seed %d, step %d: found %v of %d runs", seed, step, s, len(stack))
				}
				if s != nil {
					l.take(s, n*pages.PageBytes)
					model[n] = stack[:len(stack)-1]
					held -= n
					h.pages.FreeBlock(s, s.Base, s.Size)
				}
				continue
			}
			s, err := h.pages.AllocBlock(n*pages.PageBytes, 1, false)
			if err != nil {
				t.Fatal(err)
			}
			fits, room := n <= l.longest, held+n <= l.mostHeld || held == 0
			evicted := l.evict(n)
			var last *pages.Span
			for at := evicted; at != 0; at = pages.SpanPtr(at).Next { // the last evicted run first
				e := pages.SpanPtr(at)
				of := model[e.Pages()]
				if last == nil {
					last = e
				}
				if i := slices.Index(of, e); i < 0 || e.Pages() != n && *l.stack(n) != 0 {
					t.Fatalf("seed %d, step %d: evicts %d pages for %d", seed, step, e.Pages(), n)
				}
				model[e.Pages()] = slices.DeleteFunc(of, func(s *pages.Span) bool { return s == e })
				held -= e.Pages()
			}
			enough := l.mostHeld - l.mostHeld/evictShare
			if (last == nil) != (!fits || room) || last != nil && (held > 0 && held+n > enough || held+last.Pages()+n <= enough) {
				t.Fatalf("seed %d, step %d: %d pages are left of %d for %d", seed, step, held, l.mostHeld, n)
			}
			if l.hasRoom(n) != fits {
				t.Fatalf("seed %d, step %d: keeps %d pages beside %d of %d: %v", seed, step, n, held, l.mostHeld, !fits)
			}
			if fits {
				s.Claim(s.Base, s.Size)
				l.keep(s)
				model[n] = append(model[n], s)
				held += n
			} else {
				h.pages.FreeBlock(s, s.Base, s.Size)
			}
			h.pages.FreeRuns(evicted)
			if err := l.verify(h.pages.ID); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
		}
		l.mostHeld, l.longest = 3, 2 // the limit is lower now, and a run of 33 pages is not kept
		h.pages.FreeRuns(l.evict(33))
		if err := l.verify(h.pages.ID); err != nil {
			t.Errorf("seed %d, with a lower limit: %v", seed, err)
		}
		for _, at := range l.stacks {
			h.pages.FreeRuns(at)
		}
	}
}

func TestShareOfRuns(t *testing.T) {
	for _, tt := range []struct{ committed, limit, processors, most, longest uintptr }{
		{0, 0, 2, minKeptBytes, 1 << 20},
		{512 << 20, 0, 2, 8 << 20, 1 << 20}, // a 32nd for all together
		{512 << 20, 0, 1, 16 << 20, 1 << 20},
		{2 << 30, 0, 2, maxKeptBytes, 1 << 20},
		{2 << 30, 0, 64, 1 << 20, 1 << 20},
		{1 << 30, 0, 64, minKeptBytes, 1 << 20},
		{2 << 30, 640 << 20, 2, 10 << 20, 1 << 20}, // no more of the limit than that
		{48 << 20, 48 << 20, 2, 768 << 10, 768 << 10},
		{16 << 20, 16 << 20, 2, 256 << 10, 256 << 10},
	} {
		if most, longest := mostKeptBytes(tt.committed, tt.limit, tt.processors); most != tt.most || longest != tt.longest {
			t.Errorf("%+v: a cache keeps %d bytes, or a run of %d", tt, most, longest)
		}
	}
}

// What no cache may keep goes to the page heap.
func TestRunsThatAreNotKept(t *testing.T) {
	never := func(*processor, []byte) {}
	for name, tt := range map[string]struct {
		o           Options
		size, align int
		before      func(o *processor, b []byte)
	}{
		"too long":             {Options{}, 1<<20 + 1, 1, never},
		"of a great alignment": {Options{}, 64 << 10, 2 * pages.PageBytes, never},
		"whole pages":          {Options{WholePages: true}, 64 << 10, 1, never},
		"a low limit":          {Options{MaxBytes: 1 << 20}, 64 << 10, 1, never},
		"advice that persists": {Options{}, 64 << 10, 1, func(_ *processor, b []byte) { pages.Advise(b, vm.Random) }},
	} {
		h := newHeap(t, tt.o)
		o := newProcessor(h)
		for range 3 {
			b := allocOn(t, o, tt.size, tt.align, false)
			tt.before(o, b)
			if name == "advice that persists" && small.SpanAt(small.AddrOf(b)).Separate == 0 {
				t.Skip("the system takes no such advice")
			}
			o.Free(b)
			if n := o.kept().Blocks; n != 0 {
				t.Errorf("%s: %d runs are kept", name, n)
			}
		}
		o.Close()
	}
}

// Nothing of what caches keep is left by what gives memory back.
func TestKeptRunsAreGivenBack(t *testing.T) {
	for name, do := range map[string]func(h *Heap, o *processor){
		"Trim": func(h *Heap, _ *processor) { h.Trim() },
		"decay": func(h *Heap, _ *processor) {
			for range 3 * pages.TicksPerDecay {
				h.tick()
			}
		},
	} {
		h := newHeap(t, Options{Decay: never})
		o := keeping(t, h, 64<<10, 128<<10, 200<<10)
		if !h.pages.Alarm.Set() {
			t.Errorf("%s: no timer runs", name)
		}
		if n := o.kept().Blocks; n != 3 {
			t.Fatalf("%s: %d runs are kept, want 3", name, n)
		}
		do(h, o)
		if st := h.Stats(); st.Committed != st.Metadata {
			t.Errorf("%s: %+v", name, st)
		}
		h.check(t)
		o.Close()
	}
}

// A request that the limit has no room for gets what caches keep.
func TestKeptRunsMakeRoomAtTheLimit(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: keptShare * runtime.NumCPU() * 256 << 10})
	o := keeping(t, h, 200<<10)
	if o.kept().Blocks != 1 {
		t.Fatal("no run is kept")
	}
	var live [][]byte
	for {
		b, err := h.Alloc(200<<10+1, 1, false)
		if err != nil {
			break
		}
		live = append(live, b)
	}
	if n := o.kept().Blocks; n != 0 {
		t.Errorf("%d runs are kept while a request is refused", n)
	}
	for _, b := range live {
		h.Free(b)
	}
	o.Close()
}

// A cache learns that the limit has fallen when it has no room. Below 256 KiB for each processor, it
// then keeps nothing.
func TestKeptRunsAtALowerLimit(t *testing.T) {
	payer := &testPayer{max: 1 << 30}
	h := newHeap(t, Options{Payer: payer})
	o := keeping(t, h, 200<<10, 200<<10)
	b := allocOn(t, o, 200<<10+pages.PageBytes, 1, false)
	if o.kept().Blocks != 2 {
		t.Fatalf("%d runs are kept, want 2", o.kept().Blocks)
	}
	payer.max = keptShare*pages.PageBytes*runtime.NumCPU() - 1
	o.Free(b)
	if n := o.kept().Blocks; n != 0 {
		t.Errorf("%d runs are kept at a limit of %d bytes", n, payer.max)
	}
	h.check(t)
	o.Close()
}

// Blocks keep their bytes, and the heap is in order, whatever is asked of it.
func TestRandomProgramsWithRuns(t *testing.T) {
	calls := 4000
	if testing.Short() {
		calls = 1500
	}
	for seed, o := range []Options{{}, {MaxBytes: 64 << 20}, {HugePages: true}, {WholePages: true}} {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		h := newHeap(t, o)
		two := twoProcessors{h, newProcessors(h, 2), r}
		runs.Program{
			Calls: calls, MostLive: 60, Aligns: 15,
			Size: func() int {
				if r.IntN(10) == 0 {
					return 1 + r.IntN(3<<20)
				}
				return 30<<10 + 1 + r.IntN(230<<10)
			},
			Advise: func(b []byte) { pages.Advise(b, vm.Random) },
			Check: func() {
				if r.IntN(8) == 0 {
					h.check(t)
				}
			},
		}.Run(t, r, two)
		for _, o := range two.processors {
			o.Close()
		}
		h.Trim()
		if st := h.Stats(); st.Active != 0 || st.Blocks != 0 || st.LargeBlocks != 0 {
			t.Errorf("%+v", st)
		}
	}
}

// twoProcessors is a heap that two processors call. Each call is by one of them, at random.
type twoProcessors struct {
	*Heap
	processors []*processor
	rand       *rand.Rand
}

func (h twoProcessors) Alloc(size, align int, zero bool) ([]byte, error) {
	return h.processors[h.rand.IntN(2)].Alloc(size, align, zero)
}

func (h twoProcessors) Free(b []byte) { h.processors[h.rand.IntN(2)].Free(b) }

// A block that a run serves counts as others do: at rate 1 each is watched.
func TestRunsAreCounted(t *testing.T) {
	h := newHeap(t, Options{})
	o := keeping(t, h)
	for _, rate := range []int{0, 1, 0} {
		SampleAt(t, rate) // drains the caches
		for range 3 {
			b := allocOn(t, o, 64<<10, 1, false)
			if is := isWatched(small.SpanAt(small.AddrOf(b)), h.pages.ID, small.AddrOf(b)); is != (rate == 1) {
				t.Errorf("rate %d: the block is watched: %v", rate, is)
			}
			o.Free(b)
		}
		if kept := o.kept().Blocks; kept != 1 {
			t.Errorf("rate %d: %d runs are kept, want 1", rate, kept)
		}
	}
	o.Close()
}
