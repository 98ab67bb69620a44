// Reclaim: giving memory back before a request is refused.

package heap

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/test/await"
	"github.com/freehold-go/freehold/internal/vm"
)

func TestRefusalTriesAgainWhatWasRefused(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 2<<20 - 1}) // so low that it counts at each refusal
	small, _ := alloc(t, h, 1000), alloc(t, h, 1000)
	b, _ := alloc(t, h, 1<<20), alloc(t, h, 40000)
	h.Free(b)
	restore := refuse(vm.OpDecommit)
	h.Trim()
	restore()
	h.Free(small)               // something to drain ...
	h.caches.drainedAt.Store(0) // ... that was not drained just now
	b, err := h.Alloc(1<<20+pages.PageBytes, 8, false)
	if err != nil {
		t.Fatal(err)
	}
	h.Free(b)
}

// At its limit a heap counts once it has refused a part of the limit, or after a while.
func TestWhichRefusalsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which time passes by Sleep alone
		const limit = 64 << 20
		h := newHeap(t, Options{MaxBytes: limit})
		const part = limit / drainShare / pages.PageBytes
		for i, c := range []struct {
			pages uintptr
			after time.Duration
			want  bool
		}{
			{1, 0, true}, // none before
			{1, 0, false},
			{part - 1, 0, false}, // a part, with the one before
			{1, 0, true},         // more than a part
			{part, 0, false},     // begun anew
			{1, 0, true},
			{^uintptr(0), 0, true}, // more than the limit
			{1, drainPause - 1, false},
			{1, 1, true},
			{1, 0, false},
		} {
			time.Sleep(c.after)
			if got := h.mayCount(c.pages); got != c.want {
				t.Errorf("refusal %d, of %d pages: counts %t", i, c.pages, got)
			}
		}
	})
}

// A clock that was set back, or a bubble's, may say that the last count and drain are in the
// future. The heap counts and drains all the same.
func TestClockThatWasSetBack(t *testing.T) {
	const limit = 8 << 20
	h := newHeap(t, Options{MaxBytes: limit})
	future := time.Now().Add(time.Hour).UnixNano()
	h.countedAt.Store(future)
	h.caches.drainedAt.Store(future)
	h.Free(alloc(t, h, 8)) // something to drain, less than a share of the limit
	if n := h.count(); n.cached+n.emptySpans == 0 || n.cached+n.emptySpans >= limit/drainShare {
		t.Fatalf("the caches hold %d bytes", n.cached+n.emptySpans)
	}
	if !h.mayCount(1) || !h.worthADrain() {
		t.Error("no drain")
	}
}

// A refusal tries pages that the system refused to take back again, though there
// is nothing to drain.
func TestRefusalWithoutADrainTriesAgain(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 2<<20 - 1})
	useAndFree(t, h, 1<<20)
	restore := refuse(vm.OpDecommit)
	h.Trim()
	restore()
	if n := h.count(); n.cached+n.emptySpans != 0 || h.pages.Figures().Dirty == 0 {
		t.Fatalf("%+v, %d bytes of free pages", n, h.pages.Figures().Dirty)
	}
	h.Free(alloc(t, h, 1<<20+8<<10))
}

// At its limit the heap drains once it has refused a part of the limit, and not at each refusal. A
// caller that frees and tries again gets the memory soon.
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
			if !errors.Is(err, pages.ErrOutOfMemory) {
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
				if most := drainShare + 1; len(live) == 0 && refused(most) {
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

// A request that others have made room for since it was refused is tried again, also
// in a moment in which nothing is counted.
func TestRoomThatAnotherPurgeHasMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which no time passes
		h := newHeap(t, Options{MaxBytes: 16 << 20})
		useAndFree(t, h, 10<<20)
		barrier := alloc(t, h, 1<<20)
		h.countedAt.Store(time.Now().UnixNano())
		tries := 0
		err := h.withReclaim(1, true, func() error {
			if tries++; tries > 1 {
				return nil
			}
			h.pages.Scavenging.Lock()
			h.pages.Purge(^uintptr(0))
			h.pages.Scavenging.Unlock()
			return pages.ErrOutOfMemory
		})
		if err != nil {
			t.Error(err)
		}
		h.Free(barrier)
	})
}

// A request is served from free pages though it needs slabs beside them: for a
// span, for its statuses and for a magazine.
func TestRefusalMakesRoomForSlabs(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 4 << 20})
	b := alloc(t, h, 2<<20)
	h.pages.MaxBytes = h.pages.Figures().Committed
	h.Free(b)
	alloc(t, h, 8) // of the class with the shortest span
}

// count adds up the live blocks, large ones too, and the empty spans.
func TestCountOfWhatADrainBrings(t *testing.T) {
	h := newHeap(t, Options{})
	before := h.count()
	alloc(t, h, 1<<20)
	if n := h.count(); n.live != before.live+1<<20 {
		t.Errorf("live is %d with a block of 1 MiB", n.live)
	}
	p := newProcessor(h)
	p.Free(allocOn(t, p, 1000, 1, false))
	p.Close()
	if n := h.count(); n.emptySpans != int(small.SpanPages(small.ClassFor(1000, 1)))*pages.PageBytes {
		t.Errorf("%d bytes in empty spans, of which there is one", n.emptySpans)
	}
	h.Close()
	if h.reclaim(1) {
		t.Error("a closed heap has something to reclaim")
	}
}

// One drain serves all requests that wait for it, and each of them is tried again.
func TestRequestsShareADrain(t *testing.T) {
	h := newHeap(t, Options{})
	drains, done, again := 0, make(chan bool, 1), false
	defer pin.OnWait(func(p *pin.Holders) {
		if p != &h.caches.Holders {
			return
		}
		if drains++; drains == 1 {
			go func() { again = h.reclaim(1); done <- true }()
			await.Lock("(*Heap).reclaim", done)
		}
	})()
	h.reclaim(1)
	if <-done; drains != 1 || !again {
		t.Errorf("%d drains; tried again: %v", drains, again)
	}
}

// Before the heap refuses a request because the system refuses memory, it maps the runs again that
// the system refused to map before.
func TestRefusalMapsLostRunsAnew(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 9<<20)
	alloc(t, h, 40000) // so that it cannot grow in place
	b, ok := h.Resize(b, 12<<20)
	if !ok {
		t.Skip("pages are not moved here")
	}
	restore := refuse(vm.OpCommit)
	h.Free(b)
	restore()
	if st := h.Stats(); st.Active == st.LargeBytes {
		t.Fatal("the run was not lost")
	}
	drained := false
	defer pin.OnWait(func(p *pin.Holders) { drained = drained || p == &h.caches.Holders })()
	restore = vm.SetFault(func(op vm.Op) error {
		if op == vm.OpCommit && !drained {
			return syscall.ENOMEM
		}
		return nil
	})
	_, err := h.Alloc(256<<20, 8, false)
	restore()
	if err != nil || !drained {
		t.Fatalf("drained: %v, %v", drained, err)
	}
	if st := h.Stats(); st.Active != st.LargeBytes {
		t.Error("the run is still lost")
	}
}
