// Leaves: Alloc and Free of small blocks in Go.
//
// Each is a leaf, in which the goroutine keeps its processor: see runtime.go of package pin.
// A leaf gives up, and has changed nothing, where the cache has no block, or no room for
// one, where the block is not a live one of the heap, and where the countdown ends. Then a
// slow path does the work.
//
// What a leaf calls must be inlined, and its variables must fit into the registers.
// Otherwise pins are used: TestLeavesTakeNoPins.

package heap

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/vm"
	"github.com/freehold-go/freehold/internal/watch"
)

// leaves calls the leaves, without pins if package pin knows how.
var leaves = leafFunctions{
	alloc:       pin.Unpinned(allocLeaf, allocPinned),
	free:        pin.Unpinned(freeLeaf, freePinned),
	freePointer: pin.Unpinned(freePointerLeaf, freePointerPinned),
	localAlloc:  pin.Unpinned(localAllocLeaf, localAllocPinned),
	localFree:   pin.Unpinned(localFreeLeaf, localFreePinned),
}

// The arguments that have no name are there because package pin expects the slot behind four
// words.
type leafFunctions struct {
	alloc       func(h *Heap, size, align int, _, at uintptr) (p unsafe.Pointer, dirty bool)
	free        func(h *Heap, addr uintptr, size int, _, at uintptr) bool
	freePointer func(h *Heap, addr, _, _, at uintptr) bool
	localAlloc  func(o *LocalCache, size, align int, _, at uintptr) (p unsafe.Pointer, dirty bool)
	localFree   func(o *LocalCache, addr uintptr, size int, _, at uintptr) bool
}

// alloc is Alloc in Go.
func (h *Heap) alloc(size, align int, zero bool) ([]byte, error) {
	if size > maxSmall {
		return h.allocRun(size, align, zero)
	}
	p, dirty := leaves.alloc(h, size, align, 0, 0)
	if p == nil {
		return h.allocSlow(nil, size, align, zero)
	}
	b := unsafe.Slice((*byte)(p), size)
	if zero && dirty {
		clear(b)
	}
	return b, nil
}

// free is Free in Go.
func (h *Heap) free(b []byte) {
	switch {
	case len(b) > maxSmall:
		h.freeRun(b)
	case !leaves.free(h, addrOf(b), len(b), 0, 0):
		h.freeSlow(nil, b)
	}
}

// freePointer is FreePointer in Go.
func (h *Heap) freePointer(p unsafe.Pointer) {
	if !leaves.freePointer(h, uintptr(p), 0, 0, 0) {
		h.freePointerSlow(p)
	}
}

// alloc is Alloc in Go.
func (o *LocalCache) alloc(size, align int, zero bool) ([]byte, error) {
	if size > maxSmall {
		return o.allocRun(size, align, zero)
	}
	p, dirty := leaves.localAlloc(o, size, align, 0, 0)
	if p == nil {
		o.mustBeOpen(allocCall(o, zero))
		return o.heap.allocSlow(o, size, align, zero)
	}
	b := unsafe.Slice((*byte)(p), size)
	if zero && dirty {
		clear(b)
	}
	return b, nil
}

// free is Free in Go.
func (o *LocalCache) free(b []byte) {
	switch {
	case len(b) > maxSmall:
		o.freeRun(b)
	case !leaves.localFree(o, addrOf(b), len(b), 0, 0):
		o.freeSlow(b)
	}
}

// freeSlow is the heap's.
func (o *LocalCache) freeSlow(b []byte) {
	o.mustBeMade("Cache.Free")
	if cap(b) > 0 {
		o.mustBeOpen("Cache.Free")
	}
	o.heap.freeSlow(o, b)
}

//go:nosplit
//go:noinline
func allocLeaf(h *Heap, size, align int, _, at uintptr) (p unsafe.Pointer, dirty bool) {
	i, ok := classIndex(size, align)
	if !ok {
		return nil, false
	}
	c := h.caches.Entry(pin.SlotAt(at))
	if c == nil { // in a zero Heap
		return nil, false
	}
	e, st, was := c.next(classOf[i])
	if was < freeZero || !c.countDown(size) {
		return nil, false
	}
	return c.take(classOf[i], e, st, size), was != freeZero
}

//go:nosplit
//go:noinline
func freeLeaf(h *Heap, addr uintptr, size int, _, at uintptr) bool {
	c := h.caches.Entry(pin.SlotAt(at))
	st, class := statusIn(pageWord(addr, h.mapID))
	// The status of a free block is larger than maxSmall.
	return st != 0 && size <= maxSmall && int(*statusAt(st)) == size && c.put(class, addr, st)
}

//go:nosplit
//go:noinline
func freePointerLeaf(h *Heap, addr, _, _, at uintptr) bool {
	c := h.caches.Entry(pin.SlotAt(at))
	st, class := statusIn(pageWord(addr, h.mapID))
	// The status of a live block is its size, unless it is watched.
	return st != 0 && *statusAt(st) <= maxSmall && c.put(class, addr, st)
}

//go:nosplit
//go:noinline
func localAllocLeaf(o *LocalCache, size, align int, _, _ uintptr) (p unsafe.Pointer, dirty bool) {
	i, ok := classIndex(size, align)
	if !ok {
		return nil, false
	}
	c := o.slot.Entry()
	if c == nil { // in a zero LocalCache
		return nil, false
	}
	e, st, was := c.next(classOf[i])
	if was < freeZero || !c.countDown(size) {
		return nil, false
	}
	return c.take(classOf[i], e, st, size), was != freeZero
}

//go:nosplit
//go:noinline
func localFreeLeaf(o *LocalCache, addr uintptr, size int, _, _ uintptr) bool {
	st, class := statusIn(pageWord(addr, o.mapID))
	return st != 0 && size <= maxSmall && int(*statusAt(st)) == size && o.slot.Entry().put(class, addr, st)
}

// The same with a pin, or a lock.

func allocPinned(h *Heap, size, align int, _, _ uintptr) (p unsafe.Pointer, dirty bool) {
	slot := h.caches.Enter()
	p, dirty = allocLeaf(h, size, align, 0, uintptr(slot))
	h.caches.Leave(slot)
	return p, dirty
}

func freePinned(h *Heap, addr uintptr, size int, _, _ uintptr) bool {
	slot := h.caches.Enter()
	done := freeLeaf(h, addr, size, 0, uintptr(slot))
	h.caches.Leave(slot)
	return done
}

func freePointerPinned(h *Heap, addr, _, _, _ uintptr) bool {
	slot := h.caches.Enter()
	done := freePointerLeaf(h, addr, 0, 0, uintptr(slot))
	h.caches.Leave(slot)
	return done
}

func localAllocPinned(o *LocalCache, size, align int, _, _ uintptr) (p unsafe.Pointer, dirty bool) {
	if o.heap == nil {
		return nil, false
	}
	slot := o.heap.caches.Enter()
	p, dirty = localAllocLeaf(o, size, align, 0, 0)
	o.heap.caches.Leave(slot)
	return p, dirty
}

func localFreePinned(o *LocalCache, addr uintptr, size int, _, _ uintptr) bool {
	if o.heap == nil {
		return false
	}
	slot := o.heap.caches.Enter()
	done := localFreeLeaf(o, addr, size, 0, 0)
	o.heap.caches.Leave(slot)
	return done
}

// next returns the topmost entry of a class and the status of its block, which is not free if
// there is none, or if the block was freed twice.
func (c *cache) next(class uint8) (e *entry, st *uint16, was uint16) {
	e = entryAt(*c.top(class) - entryBytes)
	st = statusAt(e.status)
	return e, st, *st
}

// countDown counts size bytes, and what each block counts more, down to the next event. If
// this block is one, it counts nothing and reports false.
func (c *cache) countDown(size int) bool {
	if watch.Countdown.Rate.Load() == 0 {
		return true
	}
	left := c.left - int64(size) - watch.Countdown.Extra.Load()
	if left < 0 {
		return false
	}
	c.left = left
	return true
}

// take takes the block that next has found for size bytes.
func (c *cache) take(class uint8, e *entry, st *uint16, size int) unsafe.Pointer {
	*st = uint16(size)
	*c.top(class) = uintptr(unsafe.Pointer(e))
	return vm.NonNil(e.addr)
}

// put frees the block at addr, with the status at st, onto the loaded magazine of its class.
// It reports false if that is full or missing. The slot is held.
func (c *cache) put(class uint8, addr, st uintptr) bool {
	top := c.top(class)
	if *top == *c.end(class) {
		return false
	}
	*statusAt(st) = freeDirty
	*entryAt(*top) = entry{addr, st}
	*top += entryBytes
	return true
}

// top and end are tops[class] and ends[class] without a check of the class, which the page
// map or classOf has named.
func (c *cache) top(class uint8) *uintptr {
	return (*uintptr)(unsafe.Add(unsafe.Pointer(&c.tops), uintptr(class)*unsafe.Sizeof(c.tops[0])))
}

func (c *cache) end(class uint8) *uintptr {
	return (*uintptr)(unsafe.Add(unsafe.Pointer(&c.ends), uintptr(class)*unsafe.Sizeof(c.ends[0])))
}
