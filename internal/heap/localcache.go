// Local caches: caches of one goroutine instead of a processor.
//
// A local cache exchanges magazines with the stocks like the others. Only its owner
// uses it, but a drain may take it away. A drain waits for the holders of the heap's
// slots, so the owner holds one of these, any of them, during each call.

package heap

import (
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/pin"
)

// LocalCache is a cache with one owner. Init makes it ready. Its blocks may be freed to
// the heap, and the heap's blocks to it.
type LocalCache struct {
	mapID  uint64          // the heap's
	slot   pin.Slot[cache] // has joined the heap's caches
	heap   *Heap
	closed bool
}

// Init makes o an empty cache of h. Its owner must Close it.
func (o *LocalCache) Init(h *Heap) {
	o.heap, o.mapID = h, h.mapID
	h.mustBeOpen("Heap.NewCache")
	h.caches.Join(&o.slot)
}

// Close returns the cache's blocks to the heap. A second Close is a no-op; other later
// calls panic.
func (o *LocalCache) Close() {
	o.mustBeMade("Cache.Close")
	if o.closed {
		return
	}
	o.closed = true
	h := o.heap
	h.counting.Lock()
	defer h.counting.Unlock()
	c := h.caches.Part(&o.slot)
	if c == &noCache {
		return
	}
	h.empty(c)
	h.pages.FreeObject(c.addr(), cacheBytes)
}

// mustBeMade panics in the name of call for a zero LocalCache.
func (o *LocalCache) mustBeMade(call string) {
	if o.heap == nil {
		arg.Panicf(call, "zero value: Heap.NewCache makes a Cache")
	}
}

// mustBeOpen panics in the name of call for a zero LocalCache and after Close.
func (o *LocalCache) mustBeOpen(call string) {
	o.mustBeMade(call)
	if o.closed {
		arg.Panicf(call, "the cache of heap %q is closed", o.heap.pages.Name)
	}
}

// Alloc is the heap's, in a cache of its owner's.
func (o *LocalCache) Alloc(size, align int, zero bool) ([]byte, error) {
	return Fast.LocalAlloc(o, size, align, zero, 0)
}

// Free is the heap's, into a cache of its owner's.
func (o *LocalCache) Free(b []byte) { Fast.localFree(o, b, 0) }

// Resize is [Heap.Resize].
func (o *LocalCache) Resize(b []byte, size int) ([]byte, bool) {
	if len(b) > 0 {
		o.mustBeOpen("Cache.Resize")
	}
	o.mustBeMade("Cache.Resize")
	if size == 0 {
		o.Free(b)
		return []byte{}, true
	}
	return o.heap.resize("Cache.Resize", b, size)
}
