package heap

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/vm"
)

// awaitLock waits until a goroutine is in the function and waits for a mutex, or
// is done.
func awaitLock(function string, done <-chan bool) {
	for stacks := make([]byte, 1<<20); ; runtime.Gosched() {
		select {
		case <-done:
			return
		default:
		}
		for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			status, calls, _ := strings.Cut(stack, "\n")
			if strings.Contains(status, "[sync.Mutex.Lock") && strings.Contains(calls, function+"(") {
				return
			}
		}
	}
}

// Stats of a heap at rest is exact while the heap's own timer drains the caches.
func TestStatsAreExactDuringADrain(t *testing.T) {
	h := newHeap(t, Options{})
	var live, freed [][]byte
	for range 3000 {
		live, freed = append(live, alloc(t, h, 100)), append(freed, alloc(t, h, 200))
	}
	for _, b := range freed {
		h.Free(b)
	}
	var during Stats
	var done chan bool
	restore := pin.OnWait(func(p *pin.Holders) {
		if p != &h.caches.Holders || done != nil {
			return
		}
		done = make(chan bool)
		go func() { during = h.Stats(); close(done) }()
		awaitLock("(*Heap).Stats", done)
	})
	defer restore()
	h.Trim()
	<-done
	if st := during; st.Blocks != len(live) || st.Allocated != len(live)*112 {
		t.Errorf("%d blocks of %d bytes together, want %d of %d", st.Blocks, st.Allocated, len(live), len(live)*112)
	}
}

// No cache is made while a drain is under way, for what would be in it would not
// be drained.
func TestNoCacheIsMadeDuringADrain(t *testing.T) {
	h := newHeap(t, Options{})
	o := newLocalCache(h)
	defer o.Close()
	keep := alloc(t, h, 100)
	b, _ := o.Alloc(100, 8, false)
	waits := 0
	restore := pin.OnWait(func(p *pin.Holders) {
		if p != &h.caches.Holders {
			return
		}
		waits++
		var wg sync.WaitGroup
		wg.Go(func() { h.Free(keep); keep = alloc(t, h, 100) })
		wg.Wait()
		o.Free(b)
		b, _ = o.Alloc(100, 8, false)
		if h.hasCaches() {
			t.Error("a cache was made")
		}
	})
	h.Trim()
	restore()
	if waits != 1 {
		t.Fatalf("%d waits", waits)
	}
	h.Free(keep)
	o.Free(b)
	if !h.hasCaches() {
		t.Error("no cache after the drain")
	}
}

// At its limit the heap looks for memory once a part of the limit was freed, not
// at each refusal; and what is refused to one who then frees is soon there.
func TestRefusalsDoNotReclaimInVain(t *testing.T) {
	const limit = 16 << 20
	h := newHeap(t, Options{MaxBytes: limit})
	sizes := []int{24, 100, 500, 1000, 3000, 9000}
	var fifo [][]byte
	bytes, refused, drains := 0, 0, 0
	restore := pin.OnWait(func(p *pin.Holders) {
		if p == &h.caches.Holders {
			drains++
		}
	})
	defer restore()
	start := time.Now()
	for i := range 60000 {
		size := sizes[i%7%len(sizes)]
		for {
			b, err := h.Alloc(size, 8, false)
			if err == nil {
				fifo = append(fifo, b)
				break
			}
			if !errors.Is(err, ErrOutOfMemory) {
				t.Fatal(err)
			}
			refused++
			bytes += len(fifo[0])
			h.Free(fifo[0])
			fifo = fifo[1:]
		}
	}
	if most := 3 + bytes/(limit/drainShare) + int(time.Since(start)/drainPause); refused < 1000 || drains > most {
		t.Errorf("%d refusals and %d MiB freed: %d drains, want %d at most", refused, bytes>>20, drains, most)
	}
	held := 0
	for _, b := range fifo {
		held += h.GoodSize(len(b))
	}
	if held < limit*3/4 {
		t.Errorf("%d MiB are live at a limit of %d", held>>20, limit>>20)
	}
}

// Ticks stop the world at most once per decay.
func TestDrainsAreADecayApart(t *testing.T) {
	h := newHeap(t, Options{})
	var drains []int
	tick := 0
	defer pin.OnWait(func(p *pin.Holders) {
		if p == &h.caches.Holders {
			drains = append(drains, tick)
		}
	})()
	for tick = range 8 * ticksBetweenDrain {
		if tick%2 == 0 { // every other tick finds the heap at rest, and a cache
			h.Free(alloc(t, h, 100))
		}
		h.Tick()
	}
	for i := 1; i < len(drains); i++ {
		if drains[i]-drains[i-1] < ticksBetweenDrain {
			t.Errorf("drains in the ticks %v", drains)
			break
		}
	}
	if len(drains) < 2 {
		t.Errorf("drains in the ticks %v", drains)
	}
}

// One goroutine at work does not keep what a burst has left in the caches.
func TestCachesOfABurstAreDrainedWhileTheHeapIsBusy(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	h := newHeap(t, Options{})
	o := newLocalCache(h)
	defer o.Close()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for size := 16; size <= maxSmall; size += size / 8 {
				var live [][]byte
				for range 300 {
					live = append(live, alloc(t, h, size))
				}
				for _, b := range live {
					h.Free(b)
				}
			}
		})
	}
	wg.Wait()
	b, _ := o.Alloc(30000, 8, false)
	o.Free(b)
	if held := h.Stats().Active; held < 2*minHoard {
		t.Fatalf("the burst left %d bytes", held)
	}
	for range 2 * ticksBetweenDrain {
		var live [][]byte // more than a batch, so that the class is seen to be busy
		for range 1000 {
			live = append(live, alloc(t, h, 64))
		}
		for _, b := range live {
			h.Free(b)
		}
		h.Tick()
	}
	if held := h.Stats().Active; held > minHoard {
		t.Errorf("%d bytes are held with nothing live", held)
	}
}

// A block that is free in its span is handed out though there is no memory for
// a magazine to carry others with it.
func TestFreeBlocksAreHandedOutWithoutAMagazine(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 4 << 20})
	var live [][]byte
	for range 5000 {
		live = append(live, alloc(t, h, 24))
	}
	for i := 0; i < len(live); i += 2 {
		h.Free(live[i])
	}
	h.Trim()
	class, _ := entryOf(live[1])
	size := classes[class].magazineBytes()
	var objects []uintptr
	for {
		h.pages.mu.Lock()
		addr, err := h.pages.newObject(size)
		h.pages.mu.Unlock()
		if err == nil {
			objects = append(objects, addr)
		} else if b, err := h.Alloc(maxSmall+1, 8, false); err == nil {
			live = append(live, b)
		} else {
			break
		}
	}
	for i := range 2500 {
		b, err := h.Alloc(24, 8, false)
		if err != nil {
			t.Fatalf("block %d of 2500 that lie free: %v", i, err)
		}
		live = append(live, b)
	}
	h.pages.mu.Lock()
	for _, addr := range objects {
		h.pages.dropObject(addr, size)
	}
	h.pages.mu.Unlock()
	h.check(t)
}

// Whatever was freed, wherever it is, is found before a heap refuses what fits
// into it: at once where nothing is live, and soon where much is.
func TestNobodyIsRefusedForGood(t *testing.T) {
	sizes := []int{8, 64, 1000, 4096, 16 << 10, 32 << 10, 40 << 10}
	limits := []int{256 << 10, 1 << 20, 16 << 20}
	switch {
	case vm.GoBacked:
		limits = limits[:1]
	case testing.Short():
		limits = limits[:2]
		sizes = []int{8, 1000, 16 << 10, 40 << 10}
	}
	for _, limit := range limits {
		for _, have := range sizes {
			for _, want := range sizes {
				h := newHeap(t, Options{MaxBytes: limit})
				var live [][]byte
				for {
					b, err := h.Alloc(have, 1, false)
					if err != nil {
						break
					}
					live = append(live, b)
				}
				h.Alloc(want, 1, false) // in vain
				refused := func(most int) bool {
					for range most {
						if b, err := h.Alloc(want, 1, false); err == nil {
							h.Free(b)
							return false
						}
					}
					return true
				}
				for len(live) > 0 && refused(1) {
					h.Free(live[0])
					live = live[1:]
				}
				if most := limit/countBytes + 1; len(live) == 0 && refused(most) {
					t.Errorf("limit %d: %d bytes refused %d times after all blocks of %d were freed: %+v", limit, want, most, have, h.count())
				}
				for _, b := range live {
					h.Free(b)
				}
				h.Close()
			}
		}
	}
}

// Memory that another goroutine has freed into its cache comes to one who asks
// for it again and again.
func TestWaitingCallerGetsWhatOthersFreed(t *testing.T) {
	for _, want := range []int{8000, 40000} {
		h := newHeap(t, Options{MaxBytes: 16 << 20})
		o := newLocalCache(h)
		var live [][]byte
		for {
			b, err := o.Alloc(16<<10, 1, false)
			if err != nil {
				break
			}
			live = append(live, b)
		}
		for refused := false; !refused; {
			_, err := h.Alloc(want, 1, false)
			refused = err != nil
		}
		for _, b := range live[:12] {
			o.Free(b)
		}
		met := false
		for start := time.Now(); !met && time.Since(start) < 20*time.Second; {
			_, err := h.Alloc(want, 1, false)
			met = err == nil
		}
		if !met {
			t.Errorf("%d bytes are refused: %+v", want, h.count())
		}
		o.Close()
	}
}

// A span that is freed while holes are made is not looked at: a Cache with
// the last blocks of the spans that come next is closed meanwhile.
func TestHolesStopWhereASpanWasFreed(t *testing.T) {
	if !makesHoles {
		t.Skip("this system has no holes")
	}
	h := newHeap(t, Options{})
	const size = 4096
	last := map[*span][]byte{} // a block of each span
	var rest [][]byte
	for len(last) < 4*holeBatch {
		b := alloc(t, h, size)
		if s := spanAt(addrOf(b)); last[s] == nil {
			last[s] = b
		} else {
			rest = append(rest, b)
		}
	}
	for _, b := range rest {
		h.Free(b)
	}
	h.pages.scavenging.Lock()
	h.drain()
	h.pages.scavenging.Unlock()
	class, _ := entryOf(rest[0])
	c := &h.central[class]
	o := newLocalCache(h)
	// The lock is let go of before the first of these, and Go's mutex favours one
	// who has waited from the second time on.
	var next []*span
	n := 0
	for at := c.partial.head; at != 0; at = spanPtr(at).next {
		if n++; n > 2*holeBatch && n <= 2*holeBatch+int(classes[class].batch) {
			next = append(next, spanPtr(at))
		}
	}
	for _, s := range slices.Backward(next) { // the first that comes home stays, empty
		o.Free(last[s])
		delete(last, s)
	}
	calls, done := 0, make(chan bool)
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpDecommit {
			if calls++; calls == 1 {
				go func() { o.Close(); close(done) }()
			}
			if calls == 1 || calls == holeBatch+holeBatch/2 {
				awaitLock("(*LocalCache).Close", done)
			}
			if calls == 1 {
				time.Sleep(2 * time.Millisecond) // at least: the mutex favours none who waited for less than one
			}
		}
		return nil
	})
	h.pages.scavenging.Lock()
	c.punch(h)
	h.pages.scavenging.Unlock()
	restore()
	<-done
	h.check(t)
	for _, b := range last {
		h.Free(b)
	}
	h.Trim()
	if st := h.Stats(); st.Blocks != 0 || st.Active != 0 {
		t.Errorf("%+v", st)
	}
}
