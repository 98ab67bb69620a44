// Pin without the runtime: a few caches, each behind a lock.
//
// A goroutine prefers the cache that the address of its stack points at, and
// takes another where that one is held. Slower than pin.go, but plain Go, and
// the race detector understands it.

//go:build race || freehold_portable

package heap

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// guard is the lock that holds a cache.
type guard struct{ mu sync.Mutex }

// caches is the table of caches. An entry is 0 until it is needed.
type caches []atomic.Uintptr

func (c *caches) init() {
	n := 8
	for n < 4*runtime.NumCPU() && n < 1024 {
		n *= 2
	}
	*c = make(caches, n)
}

// place returns the goroutine's place in the table.
func (h *Heap) place() int {
	var local byte
	const stackShift = 11 // the smallest stack is 2 KiB
	hash := uint32(uintptr(unsafe.Pointer(&local))>>stackShift) * 2654435769
	return int(hash>>16) & (len(h.caches) - 1)
}

// enter holds a cache, and returns its place in the table; -1 if there is
// none. leave must follow.
func (h *Heap) enter() int {
	place := h.place()
	if h.caches[place].Load() == 0 {
		return -1
	}
	for i := range h.caches {
		try := (place + i) & (len(h.caches) - 1)
		if addr := h.caches[try].Load(); addr != 0 && cacheAt(addr).mu.TryLock() {
			return try
		}
	}
	cacheAt(h.caches[place].Load()).mu.Lock()
	return place
}

// cacheOf returns the cache that enter holds; nil if there is none.
func (h *Heap) cacheOf(place int) *cache {
	if place < 0 {
		return nil
	}
	return cacheAt(h.caches[place].Load())
}

func (h *Heap) leave(c *cache) {
	if c != nil {
		c.mu.Unlock()
	}
}

// addCache makes sure that the goroutine's place has a cache. h.mu is held.
func (h *Heap) addCache() bool {
	place := &h.caches[h.place()]
	if place.Load() == 0 {
		c, err := h.newObject(cacheSize)
		if err != nil {
			return false
		}
		place.Store(c)
	}
	return true
}

// drainCaches empties all caches. h.tending is held.
func (h *Heap) drainCaches() {
	for i := range h.caches {
		if addr := h.caches[i].Load(); addr != 0 {
			c := cacheAt(addr)
			c.mu.Lock()
			h.empty(c)
			c.mu.Unlock()
		}
	}
}

// countCached adds up, by class, the free blocks that the caches hold.
func (h *Heap) countCached(n *[numClasses]int) {
	for i := range h.caches {
		if addr := h.caches[i].Load(); addr != 0 {
			c := cacheAt(addr)
			c.mu.Lock()
			for class := range c.slots {
				n[class] += int(c.slots[class].n)
			}
			c.mu.Unlock()
		}
	}
}
