// Local caches: caches of one goroutine instead of a processor.
//
// A local cache exchanges magazines with the centrals like the others. Only its owner
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

// alloc is Alloc in Go.
func (o *LocalCache) alloc(size, align int, zero bool) ([]byte, error) {
	h := o.heap
	class := classFor(size, align)
	if class == 0 {
		o.mustBeOpen(allocCall(o, zero))
		return h.allocSlow(o, class, size, align, zero)
	}
	if h == nil {
		o.mustBeMade(allocCall(o, zero))
	}
	slot := h.caches.Enter()
	c := o.slot.Entry()
	addr, was := c.take(class, size)
	due := addr != 0 && c.due(size)
	h.caches.Leave(slot)
	if addr == 0 {
		o.mustBeOpen(allocCall(o, zero))
		return h.allocSlow(o, class, size, align, zero)
	}
	b := block(addr, size, zero && was != freeZero)
	if due {
		return h.watch.Alloc(b, align, zero)
	}
	return b, nil
}

// free is Free in Go.
func (o *LocalCache) free(b []byte) {
	h := o.heap
	if h == nil {
		o.mustBeMade("Cache.Free")
	}
	addr := addrOf(b)
	slot := h.caches.Enter()
	st, class := lookUp(addr, o.mapID)
	if st != 0 && len(b) <= maxSmall && int(*statusAt(st)) == len(b) && o.slot.Entry().push(class, entry{addr, st}) {
		*statusAt(st) = freeDirty
		h.caches.Leave(slot)
		return
	}
	h.caches.Leave(slot)
	if cap(b) > 0 {
		o.mustBeOpen("Cache.Free")
	}
	h.freeSlow(o, b)
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
