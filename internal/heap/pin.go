// Pin: a cache for each processor, held by keeping the goroutine on it.
//
// A pinned goroutine is neither preempted nor moved, so it has its processor's
// cache to itself without an atomic operation. pin_portable.go is the other way.
//
// A cache is taken from its processor by clearing its place in the table and
// then stopping the world once: after that nobody is pinned who could have
// seen it there.

//go:build !race && !freehold_portable

package heap

import (
	"runtime"
	"sync"
	"sync/atomic"
	_ "unsafe" // for linkname
)

// guard is what a cache needs to be held: nothing.
type guard struct{}

// caches is the table of caches by processor. An entry is 0 until its
// processor needs a cache, and is filled under the heap's mu. Processors beyond
// the table have none: they use the central lists. It stands in the heap itself
// and has a fixed length, which saves Alloc and Free two loads each.
type caches [maxCaches]atomic.Uintptr

const maxCaches = 1024

func (*caches) init() {}

// procPin and procUnpin are on the runtime's list of names that it keeps for
// packages outside (go.dev/issue/67401).

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// enter keeps the goroutine on its processor and returns its place in the
// table. leave must follow.
func (h *Heap) enter() int { return procPin() }

// cacheOf returns the cache that enter holds; nil if there is none.
func (h *Heap) cacheOf(place int) *cache {
	if uint(place) < maxCaches {
		return cacheAt(h.caches[place].Load())
	}
	return nil
}

func (h *Heap) leave(*cache) { procUnpin() }

// addCache makes sure that the processor that it runs on has a cache. h.mu is
// held.
func (h *Heap) addCache() bool {
	id := procPin()
	procUnpin()
	if id >= maxCaches {
		return false
	}
	if h.caches[id].Load() == 0 {
		c, err := h.newObject(cacheSize)
		if err != nil {
			return false
		}
		h.caches[id].Store(c)
	}
	return true
}

// drainCaches empties the caches of all processors. h.tending is held.
func (h *Heap) drainCaches() {
	var taken []*cache
	for i := range h.caches {
		if c := h.caches[i].Swap(0); c != 0 {
			taken = append(taken, cacheAt(c))
		}
	}
	if len(taken) == 0 {
		return
	}
	waitForPins()
	for _, c := range taken {
		h.empty(c)
		h.freeCache(c)
	}
}

// countCached adds up, by class, the free blocks that the caches hold. Their
// processors may be using them.
func (h *Heap) countCached(n *[numClasses]int) {
	h.mu.Lock() // keeps a cache that is being drained from being freed
	defer h.mu.Unlock()
	for i := range h.caches {
		if addr := h.caches[i].Load(); addr != 0 {
			c := cacheAt(addr)
			for class := range c.slots {
				n[class] += int(atomic.LoadUint32(&c.slots[class].n))
			}
		}
	}
}

var stopped struct {
	mu    sync.Mutex
	stats runtime.MemStats
}

// waitForPins returns when every goroutine that is pinned now has unpinned.
func waitForPins() {
	stopped.mu.Lock()
	defer stopped.mu.Unlock()
	runtime.ReadMemStats(&stopped.stats) // stops the world, for some 20 us
}
