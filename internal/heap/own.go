// Own: a cache that belongs to one goroutine instead of a processor.
//
// It draws on the centrals like any other, and needs no place: whoever uses it
// has it to itself.

package heap

import (
	"fmt"
	"unsafe"
)

// OwnCache is a cache with one owner; Init makes it ready. Blocks from it may be
// freed to the heap, and the heap's to it.
type OwnCache struct {
	holder uint64 // the heap's
	c      cache
	heap   *Heap
	closed bool
}

// Init makes o an empty cache of h. Its owner must Close it.
func (o *OwnCache) Init(h *Heap) {
	o.heap, o.holder = h, h.holder
	o.c.clear()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed.Load() {
		panic(h.closedMessage("Cache"))
	}
	h.own[o] = struct{}{}
}

// Close returns the cache's blocks to the heap. Later calls of the cache's
// methods panic, but for Close.
func (o *OwnCache) Close() {
	if o.closed {
		return
	}
	o.closed = true
	h := o.heap
	h.mu.Lock()
	delete(h.own, o)
	h.mu.Unlock()
	h.empty(&o.c)
}

// alloc is Alloc in Go.
func (o *OwnCache) alloc(size, align int, zero bool) ([]byte, error) {
	class := classFor(size, align)
	if class == 0 {
		o.mustBeOpen("Alloc")
		return o.heap.allocLarge(size, align, zero)
	}
	addr, was := o.c.take(class, size)
	if addr == 0 {
		return o.allocSlow(class, size, align, zero)
	}
	return block(addr, size, zero && was != freeZero), nil
}

// allocSlow is Alloc of a small block where the cache has none to give.
func (o *OwnCache) allocSlow(class uint8, size, align int, zero bool) ([]byte, error) {
	o.mustBeOpen("Alloc")
	h := o.heap
	if twice := o.c.dropLive(class); twice != 0 {
		freedTwice(twice)
	}
	e, empty := o.c.popSpare(class)
	if e.addr != 0 {
		return h.use(e, nil, size, align, zero)
	}
	m, err := h.takeMagazine(class, empty)
	if err == nil {
		e = m.pop()
		o.keep(class, m)
	}
	return h.use(e, err, size, align, zero)
}

// free is Free in Go.
func (o *OwnCache) free(b []byte) {
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	st, class := stateAt(addr, o.holder)
	if st != 0 && len(b) <= maxSmall && int(*state(st)) == len(b) && o.c.push(class, entry{addr, st}) {
		*state(st) = freeDirty
		return
	}
	o.freeSlow(b)
}

// freeSlow is Free where the cache has no room, or b is no small block.
func (o *OwnCache) freeSlow(b []byte) {
	o.mustBeOpen("Free")
	h := o.heap
	e, class := h.smallBlock(b)
	if e.addr == 0 {
		h.freeLarge(b)
		return
	}
	*state(e.state) = freeDirty
	stored, full := o.c.pushSpare(class, e)
	if stored {
		return
	}
	if m := h.central[class].give(h, full, e); m != nil {
		o.keep(class, m)
	}
}

// keep puts a magazine into the cache, and what that has no room for into the
// central.
func (o *OwnCache) keep(class uint8, m *magazine) {
	if m = o.c.accept(class, m); m != nil {
		o.heap.central[class].put(o.heap, m)
	}
}

func (o *OwnCache) mustBeOpen(call string) {
	if o.closed {
		panic(fmt.Sprintf("freehold: %s on a cache of heap %q after Close", call, o.heap.name))
	}
}

// Resize is the heap's.
func (o *OwnCache) Resize(b []byte, size int) ([]byte, bool) {
	o.mustBeOpen("Resize")
	if size == 0 {
		o.Free(b)
		return []byte{}, true
	}
	return o.heap.Resize(b, size)
}
