package arena

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

func get(t *testing.T, r *Recycler, startBytes int) *Arena {
	t.Helper()
	a, err := r.Get(startBytes)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func ticking(r *Recycler) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.due.IsZero()
}

func TestRecyclerHandsOutWhatWasPut(t *testing.T) {
	parent := &recorder{Allocator: alloctest.New(t)}
	r := NewRecycler(parent, &RecyclerOptions{Decay: -1})
	defer r.Close()
	a := get(t, r, 0)
	if len(parent.sizes) != 0 {
		t.Error("Get(0) takes memory")
	}
	freehold.Must(a.Alloc(100, 8))
	r.Put(a)
	if got := r.Stats(); got.Idle != 1 || got.Reserved != 4096 {
		t.Errorf("%+v", got)
	}
	b := get(t, r, 0)
	if b != a || b.Stats().LiveBytes != 0 || b.Stats().Reserved != 4096 || r.Stats().Idle != 0 {
		t.Errorf("%+v, %+v", b.Stats(), r.Stats())
	}
	c := get(t, r, 0)
	if c == a {
		t.Error("handed out twice")
	}
	r.Put(c)
	r.Put(b)
}

func TestRecyclerHonoursStartBytes(t *testing.T) {
	parent := &recorder{Allocator: alloctest.New(t)}
	r := NewRecycler(parent, &RecyclerOptions{Decay: -1})
	defer r.Close()
	small, large := get(t, r, 100), get(t, r, 100000)
	r.Put(large)
	r.Put(small)
	if a := get(t, r, 50000); a != large {
		t.Error("the arena that holds as much is not found")
	}
	for range 2 { // the second time from the stack
		a := get(t, r, 200000)
		chunks := len(parent.sizes)
		for range 200 {
			freehold.Must(a.Alloc(1000, 1))
		}
		if len(parent.sizes) != chunks {
			t.Errorf("%d chunks after Get", len(parent.sizes)-chunks)
		}
		r.Put(a)
	}
	r.Put(large)
	wantPanic(t, "freehold: arena.Recycler.Get: startBytes -1, want 0 or more", func() { r.Get(-1) })
}

// TestGetLooksAtFewArenas: a Get that no idle arena suits does not look at all of them.
func TestGetLooksAtFewArenas(t *testing.T) {
	r := NewRecycler(alloctest.New(t), &RecyclerOptions{Decay: -1})
	defer r.Close()
	for _, first := range []int{maxLook, maxLook + 1} { // the large one is the last looked at, and the one below
		var all []*Arena
		large := get(t, r, 100_000)
		for range first - 1 {
			all = append(all, get(t, r, 100))
		}
		r.Put(large)
		for _, a := range all {
			r.Put(a)
		}
		a := get(t, r, 50_000)
		if want := first == maxLook; (a == large) != want {
			t.Errorf("with %d idle arenas put later: the large one is found: %t", first-1, !want)
		}
		r.Put(a)
		for range first {
			get(t, r, 0).Close()
		}
	}
}

func TestRecyclerBounds(t *testing.T) {
	parent := &recorder{Allocator: alloctest.New(t)}
	r := NewRecycler(parent, &RecyclerOptions{MaxBytes: 10000, MaxArenaBytes: 5000, Decay: -1})
	defer r.Close()
	var arenas []*Arena
	for i := range 5 {
		arenas = append(arenas, get(t, r, 4096))
		freehold.Must(arenas[i].Alloc(20000, 1))
	}
	for i, a := range arenas {
		r.Put(a)
		want := RecyclerStats{min(i+1, 2), min(i+1, 2) * 4096, 10000}
		if got := r.Stats(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	last, before := get(t, r, 0), get(t, r, 0)
	if last != arenas[4] || before != arenas[3] {
		t.Error("not the ones that were put last")
	}
	r.Put(last)
	r.Put(before)
}

func TestRecyclerHandsOutTheLastWhereNoneIsLargeEnough(t *testing.T) {
	r := NewRecycler(alloctest.New(t), &RecyclerOptions{Decay: -1})
	defer r.Close()
	first, last := get(t, r, 100), get(t, r, 100)
	r.Put(first)
	r.Put(last)
	if a := get(t, r, 50000); a != last {
		t.Error("not the one that was put last")
	}
	r.Put(last)
}

// TestOneLargeArenaDisplacesNoOthers: Put closes an arena above MaxBytes alone.
func TestOneLargeArenaDisplacesNoOthers(t *testing.T) {
	r := NewRecycler(alloctest.New(t), &RecyclerOptions{MaxBytes: 10000, MaxArenaBytes: 100000, Decay: -1})
	defer r.Close()
	small, large := get(t, r, 4096), get(t, r, 20000)
	r.Put(small)
	r.Put(large)
	if got := r.Stats(); got.Idle != 1 || got.Reserved != 4096 || large.state != closed {
		t.Errorf("%+v", got)
	}
}

// TestRecyclerOfAnEmptiedArena: ristretto's AllocatorPool trims an arena whose
// first buffer is large to nothing, and hands it out again to spin forever.
func TestRecyclerOfAnEmptiedArena(t *testing.T) {
	r := NewRecycler(alloctest.New(t), &RecyclerOptions{MaxBytes: 10000, MaxArenaBytes: 1, Decay: -1})
	defer r.Close()
	a := get(t, r, 0)
	for range 3 {
		for range 100 {
			freehold.Must(freehold.New[[64]byte](a))
		}
		r.Put(a)
		if got := r.Stats(); got.Idle != 1 || got.Reserved != 0 {
			t.Errorf("%+v", got)
		}
		if b := get(t, r, 0); b != a {
			t.Error("the emptied arena is not handed out again")
		}
	}
	r.Put(a)
}

func TestRecyclerMisuse(t *testing.T) {
	r := NewRecycler(alloctest.New(t), &RecyclerOptions{Decay: -1})
	a := get(t, r, 100)
	lent := get(t, r, 100)
	r.Put(a)
	calls := callsOf(a, make([]byte, 8), Mark{})
	calls["Recycler.Put"] = func() { r.Put(a) }
	calls["Arena.Close"] = a.Close
	for call, use := range calls {
		wantPanic(t, "freehold: arena."+call+": the arena was put into its Recycler", use)
	}
	own := New(alloctest.New(t), nil)
	defer own.Close()
	wantPanic(t, "freehold: arena.Recycler.Put: the arena did not come from this Recycler", func() { r.Put(own) })
	gone := get(t, r, 10)
	gone.Close()
	r.Put(gone)
	if r.Stats().Idle != 0 {
		t.Errorf("%+v", r.Stats())
	}
	r.Close()
	r.Close()
	freehold.Must(lent.Alloc(10, 1)) // still works
	r.Put(lent)
	if lent.state != closed {
		t.Error("an arena that was put into a closed Recycler is open")
	}
	wantPanic(t, "freehold: arena.Recycler.Get: the Recycler is closed", func() { r.Get(0) })
	wantPanic(t, "freehold: arena.NewRecycler: RecyclerOptions.MaxBytes -1, want 0 or more", func() { NewRecycler(freehold.Pages(), &RecyclerOptions{MaxBytes: -1}) })
	wantPanic(t, "freehold: arena.NewRecycler: Options.ChunkBytes -1, want 0 or more", func() { NewRecycler(freehold.Pages(), &RecyclerOptions{Arena: &Options{ChunkBytes: -1}}) })
}

// An arena that a second goroutine puts while the first does is put once: it has one next
// owner.
func TestRecyclerPutTwiceAtOnce(t *testing.T) {
	var r *Recycler
	var a *Arena
	parent := onFree{alloctest.New(t), func() {
		if b := a; b != nil { // in the trim of Put
			a = nil
			wantPanic(t, "freehold: arena.Recycler.Put: the arena was put into its Recycler", func() { r.Put(b) })
		}
	}}
	r = NewRecycler(parent, &RecyclerOptions{MaxArenaBytes: 1, Decay: -1})
	defer r.Close()
	a = get(t, r, 100)
	r.Put(a)
	if n := r.Stats().Idle; a != nil || n != 1 {
		t.Errorf("%d idle arenas for one", n)
	}
	if b, c := get(t, r, 0), get(t, r, 0); b == c {
		t.Error("an arena has two owners")
	} else {
		r.Put(b)
		r.Put(c)
	}
}

func TestRecyclerOverALimit(t *testing.T) {
	limit := freehold.NewLimit(alloctest.New(t), 10000)
	r := NewRecycler(limit, &RecyclerOptions{Decay: -1})
	defer r.Close()
	a, err := r.Get(10001)
	if a != nil || !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Errorf("Get beyond the limit: %v", err)
	}
	if got := r.Stats(); got.Idle != 1 || got.Reserved != 0 || limit.Used() != 0 {
		t.Errorf("%+v, %d bytes used; the arena is to be kept", got, limit.Used())
	}
	r.Put(get(t, r, 9000))
}

// TestRecyclerDecays: idle arenas are closed, by the clock of a synctest bubble.
func TestRecyclerDecays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent := freehold.NewTagged(alloctest.New(t), "")
		r := NewRecycler(parent, &RecyclerOptions{Decay: time.Minute})
		hot := get(t, r, 100)
		r.Put(get(t, r, 100))
		r.Put(hot)
		for range 10 { // keeps one arena in use
			time.Sleep(59 * time.Second)
			synctest.Wait()
			if a := get(t, r, 0); a != hot {
				t.Fatal("not the hot one")
			}
			r.Put(hot)
		}
		if got := r.Stats(); got.Idle != 1 {
			t.Errorf("%+v: the other one has not gone", got)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if got := r.Stats(); got.Idle != 0 || parent.Counts().LiveBytes != 0 || ticking(r) {
			t.Errorf("%+v, %+v, a tick is due: %t", got, parent.Counts(), ticking(r))
		}
		r.Put(get(t, r, 100)) // the timer starts again
		if !ticking(r) {
			t.Error("no tick is due")
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if got := r.Stats(); got.Idle != 0 || ticking(r) {
			t.Errorf("%+v, a tick is due: %t", got, ticking(r))
		}
		r.Put(get(t, r, 100))
		r.Close()
		time.Sleep(3 * time.Minute)
		if parent.Counts().LiveBytes != 0 {
			t.Errorf("%+v after Close", parent.Counts())
		}
	})
}

func TestRecyclerConcurrently(t *testing.T) {
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	counter := freehold.NewTagged(heap, "")
	r := NewRecycler(counter, &RecyclerOptions{MaxBytes: 100 << 10, MaxArenaBytes: 40 << 10, Decay: time.Microsecond})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range rounds {
				a, err := r.Get(i * 7 % 20000)
				if err != nil {
					t.Error(err)
					return
				}
				var blocks [20][]byte
				for j := range blocks {
					blocks[j] = freehold.Must(a.Alloc(1+(i+j*j)%500, 8))
					setAll(blocks[j], byte(g))
				}
				for _, b := range blocks {
					if b[0] != byte(g) || b[len(b)-1] != byte(g) {
						t.Error("a block has changed")
						return
					}
				}
				r.Put(a)
				if got := r.Stats(); got.Reserved > 100<<10 {
					t.Errorf("%+v", got)
				}
			}
		})
	}
	wg.Wait()
	r.Close()
	if counter.Counts().LiveBytes != 0 {
		t.Errorf("%+v after Close", counter.Counts())
	}
}

// Spare chunks that are all too small are freed for one that fits.
func TestSpareChunksMakeWay(t *testing.T) {
	o := &Options{MaxBytes: 64 << 10, MaxChunkBytes: 8 << 10}
	fillUp := func(a *Arena) {
		for {
			if _, err := a.Alloc(1000, 8); err != nil {
				return
			}
		}
	}
	h := alloctest.New(t)
	a := New(h, o)
	defer a.Close()
	fillUp(a)
	a.Reset()
	if _, err := a.Alloc(40<<10, 8); err != nil {
		t.Errorf("Alloc of 40 KiB with nothing in use and a limit of 64: %v", err)
	}
	r := NewRecycler(h, &RecyclerOptions{Arena: o})
	defer r.Close()
	b := get(t, r, 0)
	fillUp(b)
	r.Put(b)
	b, err := r.Get(40 << 10)
	if err != nil {
		t.Fatalf("Get of 40 KiB with nothing in use and a limit of 64: %v", err)
	}
	r.Put(b)
}

// onFree is a parent that calls freed after each Free, except for the Free of owners.AskParent.
type onFree struct {
	freehold.Allocator
	freed func()
}

func (o onFree) Free(b []byte) {
	o.Allocator.Free(b)
	if len(b) > 1 {
		o.freed()
	}
}

// mustCome fails unless a value comes.
func mustCome(t *testing.T, freed <-chan struct{}) {
	t.Helper()
	select {
	case <-freed:
	case <-time.After(5 * time.Minute):
		t.Fatal("no memory was given back")
	}
}

// TestRecyclerInAndOutOfABubble: a timer of a synctest bubble may not be touched
// outside of it, and one from outside never fires by the bubble's clock.
func TestRecyclerInAndOutOfABubble(t *testing.T) {
	const decay = time.Millisecond
	for _, first := range []string{"inside", "outside"} {
		t.Run(first, func(t *testing.T) {
			freed := make(chan struct{}, 1)
			parent := onFree{alloctest.New(t), func() { freed <- struct{}{} }}
			var r *Recycler
			inside := func(t *testing.T) {
				if r == nil {
					r = NewRecycler(parent, &RecyclerOptions{Decay: decay})
				}
				r.Put(get(t, r, 100))
				time.Sleep(3 * decay)
				synctest.Wait()
				if got := r.Stats(); got.Idle != 0 || ticking(r) {
					t.Fatalf("in a bubble: %+v, a tick is due: %t", got, ticking(r))
				}
				<-freed
			}
			if first == "inside" {
				synctest.Test(t, inside)
			} else {
				r = NewRecycler(parent, &RecyclerOptions{Decay: decay})
			}
			for range 2 {
				r.Put(get(t, r, 100))
				mustCome(t, freed)
				synctest.Test(t, inside)
			}
			r.Close()
		})
	}
}

// TestRecyclerAfterItsBubble: a tick due in a bubble that has ended runs outside,
// or by the clock of the next bubble.
func TestRecyclerAfterItsBubble(t *testing.T) {
	const decay = time.Millisecond
	var r *Recycler
	leaveATick := func(t *testing.T, parent freehold.Allocator) {
		synctest.Test(t, func(t *testing.T) {
			r = NewRecycler(parent, &RecyclerOptions{Decay: decay})
			r.Put(get(t, r, 100))
		})
		if !ticking(r) {
			t.Fatal("no tick is due")
		}
	}
	t.Run("Close", func(t *testing.T) {
		leaveATick(t, alloctest.New(t))
		r.Close()
	})
	t.Run("outside", func(t *testing.T) {
		freed := make(chan struct{}, 1)
		leaveATick(t, onFree{alloctest.New(t), func() { freed <- struct{}{} }})
		for range putsPerLook {
			r.Put(get(t, r, 100))
		}
		mustCome(t, freed) // by a timer without a bubble
		r.Close()
	})
	t.Run("next bubble", func(t *testing.T) {
		leaveATick(t, alloctest.New(t))
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(decay)
			for range putsPerLook {
				r.Put(get(t, r, 100))
			}
			time.Sleep(3 * decay)
			synctest.Wait()
			if got := r.Stats(); got.Idle != 0 {
				t.Errorf("%+v", got)
			}
		})
		r.Close()
	})
}

// TestBubbleDoesNotDisturbARecycler: a bubble does not wait for a tick due
// outside, advance it or drop it.
func TestBubbleDoesNotDisturbARecycler(t *testing.T) {
	r := NewRecycler(alloctest.New(t), &RecyclerOptions{Decay: time.Hour})
	defer r.Close()
	a, b := get(t, r, 100), get(t, r, 100)
	r.Put(a)
	due := r.due
	synctest.Test(t, func(t *testing.T) {
		r.Put(b)
		time.Sleep(24 * time.Hour)
		for range putsPerLook {
			r.Put(get(t, r, 0))
		}
		synctest.Wait()
	})
	if got := r.Stats(); got.Idle != 2 || r.due != due {
		t.Errorf("%+v, a tick is due at %v, was at %v", got, r.due, due)
	}
}

// TestRecyclerKeepsToOneGoroutine: if the parent belongs to one goroutine, decayed arenas
// wait for a Put.
func TestRecyclerKeepsToOneGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scratch := New(alloctest.New(t), nil)
		defer scratch.Close()
		r := NewRecycler(scratch, &RecyclerOptions{Decay: time.Minute})
		a, b := get(t, r, 100), get(t, r, 100)
		r.Put(a)
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := r.Stats(); got.Idle != 1 {
			t.Errorf("%+v: somebody else has closed an arena", got)
		}
		r.Put(b)
		if got := r.Stats(); got.Idle != 1 || get(t, r, 0) != b {
			t.Errorf("%+v: the arena that has decayed is still there", got)
		}
		b.Close()
		r.Close()
	})
}

// TestRecyclerCloseWaitsForATick: the parent may be closed next.
func TestRecyclerCloseWaitsForATick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *Recycler
		frees := 0
		parent := onFree{alloctest.New(t), func() {
			frees++
			if r.ending.TryLock() {
				r.ending.Unlock()
				t.Error("memory is given back, and Close would not wait for it")
			}
		}}
		r = NewRecycler(parent, &RecyclerOptions{Decay: time.Minute})
		r.Put(get(t, r, 100))
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		r.Put(get(t, r, 100))
		r.Close()
		if frees != 2 {
			t.Errorf("%d blocks were given back, want one by a tick and one by Close", frees)
		}
	})
}
