// Drain: emptying the caches.

package heap

import (
	"runtime"
	"sync"
	"testing"

	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/test/await"
)

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
		done = make(chan bool, 1)
		go func() { during = h.Stats(); done <- true }()
		await.Lock("(*Heap).Stats", done)
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
	o := newProcessor(h)
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
		if h.caches.exist() {
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
	if !h.caches.exist() {
		t.Error("no cache after the drain")
	}
}

// Each kind of slow call flushes its processor's cache after ask.
func TestSlowCallsFlushStaleCaches(t *testing.T) {
	const large = minKeptBytes // a second one finds no room in the cache
	for name, call := range map[string]func(p *processor, live [][]byte){
		"Alloc of a small block": func(p *processor, _ [][]byte) { allocOn(t, p, 300, 8, false) },
		"Free of a small block": func(p *processor, live [][]byte) {
			for _, b := range live[1:] {
				p.Free(b)
			}
		},
		"Alloc of a large block": func(p *processor, _ [][]byte) { allocOn(t, p, large, 8, false) },
		"Free of a large block":  func(p *processor, live [][]byte) { p.Free(live[0]) },
	} {
		h := newHeap(t, Options{})
		all := newProcessors(h, 2)
		p := all[0]
		p.Free(allocOn(t, p, 100, 8, false))
		live := [][]byte{allocOn(t, p, large, 8, false)}
		for range 3 * batch {
			live = append(live, allocOn(t, p, 64, 8, false))
		}
		p.Free(allocOn(t, p, large, 8, false))
		if p.kept().Blocks != 1 {
			t.Fatal("no run is kept")
		}
		all[1].slow(func() { h.caches.ask() })
		if name == "Alloc of a large block" {
			allocOn(t, p, large, 8, false) // takes the kept run
		}
		if !h.caches.isStale(p.cache()) {
			t.Fatalf("%s: the cache is not stale", name)
		}
		if call(p, live); h.caches.isStale(p.cache()) {
			t.Errorf("%s: the cache is still stale", name)
		}
		for _, c := range h.Stats().Classes {
			if c.Size == 112 && c.Cached > 0 {
				t.Errorf("%s: %d blocks of %d bytes are left in caches", name, c.Cached, c.Size)
			}
		}
		p.Close()
	}
}

// A slow call flushes its processor's cache after ask, unless another goroutine drains or counts.
func TestStaleCacheIsFlushed(t *testing.T) {
	h := newHeap(t, Options{})
	all := newProcessors(h, 2)
	p := all[0]
	defer p.Close()
	allocOn(t, p, 100, 8, false)
	asked := p.cache()
	all[1].slow(func() { h.caches.ask() })
	h.caches.counting.Lock()
	allocOn(t, p, 200, 8, false)
	if p.cache() != asked {
		t.Error("a cache was flushed while blocks are counted")
	}
	h.caches.counting.Unlock()
	allocOn(t, p, 300, 8, false)
	if h.caches.isStale(p.cache()) {
		t.Error("a slow call leaves a stale cache")
	}
	for _, c := range h.Stats().Classes {
		if c.Size < 300 && c.Cached > 0 {
			t.Errorf("%d blocks of %d bytes are left in caches", c.Cached, c.Size)
		}
	}
}

// The goroutine of a slow call may have come to another processor, whose cache stays unless it is
// stale. After ask the processor has no cache at once.
func TestFreshCacheStays(t *testing.T) {
	h := newHeap(t, Options{})
	p := newProcessor(h)
	defer p.Close()
	allocOn(t, p, 100, 8, false)
	fresh := p.cache()
	p.slow(func() { h.caches.renew(0) })
	if p.cache() != fresh {
		t.Error("a slow call of another processor has flushed a fresh cache")
	}
	h.caches.drain() // also the cache of slot 0
	allocOn(t, p, 100, 8, false)
	p.slow(func() {
		if h.caches.ask() || p.cache() != &noCache {
			t.Error("ask leaves the cache of its processor, or finds another")
		}
	})
}

// Close waits until the blocks of a cache that was taken are in their spans.
func TestCloseWaitsForAFlush(t *testing.T) {
	h := newHeap(t, Options{})
	alloc(t, h, 100)
	h.caches.counting.Lock()
	done := make(chan bool, 1)
	go func() { h.Close(); done <- true }()
	if !await.Lock("(*caches).forget", done) {
		t.Error("Close does not wait")
	}
	h.caches.counting.Unlock()
	<-done
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

// One busy goroutine does not prevent that the blocks of a burst leave the caches.
func TestCachesOfABurstAreDrainedWhileTheHeapIsBusy(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	h := newHeap(t, Options{})
	o := newProcessor(h)
	defer o.Close()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for size := 16; size <= small.MaxSize; size += size / 8 {
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

// A drain frees the slabs that have become empty, the last of their size too.
func TestDrainFreesEmptySlabs(t *testing.T) {
	h := newHeap(t, Options{Decay: never})
	for class := 1; class < small.NumClasses; class++ {
		useAndFree(t, h, small.ClassSize(uint8(class)))
	}
	h.Trim()
	before := h.Stats().Metadata
	h.pages.FreeEmptySlabs()
	if after := h.Stats().Metadata; after != before {
		t.Errorf("%d bytes of metadata after Trim, %d of them in empty slabs", before, before-after)
	}
}
