// Leaves: Alloc and Free of small blocks in Go.
//
// Each is a leaf, in which the goroutine keeps its processor: see runtime.go of package pin.
// A leaf gives up, and has changed nothing, where the cache has no block, or no room for
// one, where the block is not a live one of the heap, and where the countdown ends. Then it
// calls a slow path, whose name ends in Missed, and returns what that returns.
//
// What else a leaf calls must be inlined. Otherwise pins are used: TestLeavesTakeNoPins.

package heap

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/vm"
	"github.com/freehold-go/freehold/internal/watch"
)

// functions are Alloc and Free. Package pin expects at behind four words; callers pass 0. Those
// that take pins call leaves with a slot, and do the rest when they have left it, if the block
// is nil or the result false.
type functions struct {
	alloc       func(h *Heap, size, align int, zero bool, at uintptr) ([]byte, error)
	free        func(h *Heap, b []byte, at uintptr) bool
	freePointer func(h *Heap, p unsafe.Pointer, _, _, at uintptr) bool
	localAlloc  func(o *LocalCache, size, align int, zero bool, at uintptr) ([]byte, error)
	localFree   func(o *LocalCache, b []byte, at uintptr) bool
}

// fast is what is called: assembly where it runs, else plain, which are leaves if package pin
// knows how to call them, else pinned.
var fast, plain, pinned functions

func init() {
	pinned = functions{allocPinned, freePinned, freePointerPinned, localAllocPinned, localFreePinned}
	plain = functions{
		alloc:       pin.Unpinned(allocLeaf, allocMissed, allocPinned),
		free:        pin.Unpinned(freeLeaf, freeMissed, freePinned),
		freePointer: pin.Unpinned(freePointerLeaf, freePointerMissed, freePointerPinned),
		localAlloc:  pin.Unpinned(localAllocLeaf, localAllocMissed, localAllocPinned),
		localFree:   pin.Unpinned(localFreeLeaf, localFreeMissed, localFreePinned),
	}
	fast = assembled(plain)
}

//go:nosplit
//go:noinline
//go:nocheckptr
func allocLeaf(h *Heap, size, align int, zero bool, at uintptr) ([]byte, error) {
	slot := pin.SlotAt(at)
	i, ok := classIndex(size, align)
	if !ok {
		return allocMissed(h, size, align, zero, at)
	}
	class := classOf[i]
	if !h.caches.Has(slot) { // a zero Heap has none
		return allocMissed(h, size, align, zero, at)
	}
	c := h.caches.At(slot).Entry()
	e, st, was := c.next(class)
	if was < freeZero {
		return allocMissed(h, size, align, zero, at)
	}
	if watch.Counting() {
		if !c.countDown(size) {
			return allocMissed(h, size, align, zero, at)
		}
	}
	p := c.take(class, e, st, size)
	if zero && was != freeZero {
		clearWords(p, size)
	}
	return (*[maxSmall]byte)(p)[:size:size], nil
}

//go:nosplit
//go:noinline
//go:nocheckptr
func freeLeaf(h *Heap, b []byte, at uintptr) bool {
	slot := pin.SlotAt(at)
	word, off, ok := pageWord(addrOf(b), h.mapID)
	if !ok {
		return freeMissed(h, b, at)
	}
	// The status of a free block is larger than maxSmall.
	st, class, ok := statusIn(word, off)
	if !ok || len(b) > maxSmall || int(*statusAt(st)) != len(b) {
		return freeMissed(h, b, at)
	}
	if !h.caches.Has(slot) {
		return freeMissed(h, b, at)
	}
	c := h.caches.At(slot).Entry()
	top, ok := c.room(class)
	if !ok {
		return freeMissed(h, b, at)
	}
	c.put(class, top, addrOf(b), st)
	return true
}

//go:nosplit
//go:noinline
//go:nocheckptr
func freePointerLeaf(h *Heap, p unsafe.Pointer, _, _, at uintptr) bool {
	slot := pin.SlotAt(at)
	word, off, ok := pageWord(uintptr(p), h.mapID)
	if !ok {
		return freePointerMissed(h, p, 0, 0, at)
	}
	// The status of a live block is its size, unless it is watched.
	st, class, ok := statusIn(word, off)
	if !ok || *statusAt(st) > maxSmall {
		return freePointerMissed(h, p, 0, 0, at)
	}
	if !h.caches.Has(slot) {
		return freePointerMissed(h, p, 0, 0, at)
	}
	c := h.caches.At(slot).Entry()
	top, ok := c.room(class)
	if !ok {
		return freePointerMissed(h, p, 0, 0, at)
	}
	c.put(class, top, uintptr(p), st)
	return true
}

//go:nosplit
//go:noinline
//go:nocheckptr
func localAllocLeaf(o *LocalCache, size, align int, zero bool, at uintptr) ([]byte, error) {
	i, ok := classIndex(size, align)
	if !ok {
		return localAllocMissed(o, size, align, zero, at)
	}
	class := classOf[i]
	c := o.slot.Entry()
	if c == nil { // in a zero LocalCache
		return localAllocMissed(o, size, align, zero, at)
	}
	e, st, was := c.next(class)
	if was < freeZero {
		return localAllocMissed(o, size, align, zero, at)
	}
	if watch.Counting() {
		if !c.countDown(size) {
			return localAllocMissed(o, size, align, zero, at)
		}
	}
	p := c.take(class, e, st, size)
	if zero && was != freeZero {
		clearWords(p, size)
	}
	return (*[maxSmall]byte)(p)[:size:size], nil
}

//go:nosplit
//go:noinline
//go:nocheckptr
func localFreeLeaf(o *LocalCache, b []byte, at uintptr) bool {
	word, off, ok := pageWord(addrOf(b), o.mapID)
	if !ok {
		return localFreeMissed(o, b, at)
	}
	st, class, ok := statusIn(word, off)
	if !ok || len(b) > maxSmall || int(*statusAt(st)) != len(b) {
		return localFreeMissed(o, b, at)
	}
	c := o.slot.Entry()
	top, ok := c.room(class)
	if !ok {
		return localFreeMissed(o, b, at)
	}
	c.put(class, top, addrOf(b), st)
	return true
}

// The slow paths. They are not inlined, so that leaves call nothing else.

//go:noinline
func allocMissed(h *Heap, size, align int, zero bool, at uintptr) ([]byte, error) {
	if pin.Held(at) {
		return nil, nil
	}
	if size > maxSmall {
		return h.allocRun(size, align, zero)
	}
	return h.allocSlow(nil, size, align, zero)
}

//go:noinline
func freeMissed(h *Heap, b []byte, at uintptr) bool {
	if pin.Held(at) {
		return false
	}
	if len(b) > maxSmall {
		h.freeRun(b)
	} else {
		h.freeSlow(nil, b)
	}
	return true
}

//go:noinline
func freePointerMissed(h *Heap, p unsafe.Pointer, _, _, at uintptr) bool {
	if pin.Held(at) {
		return false
	}
	h.freePointerSlow(p)
	return true
}

//go:noinline
func localAllocMissed(o *LocalCache, size, align int, zero bool, at uintptr) ([]byte, error) {
	if pin.Held(at) {
		return nil, nil
	}
	if size > maxSmall {
		return o.allocRun(size, align, zero)
	}
	return o.allocSlow(size, align, zero)
}

//go:noinline
func localFreeMissed(o *LocalCache, b []byte, at uintptr) bool {
	if pin.Held(at) {
		return false
	}
	if len(b) > maxSmall {
		o.freeRun(b)
	} else {
		o.freeSlow(b)
	}
	return true
}

// allocSlow and freeSlow are the heap's.

func (o *LocalCache) allocSlow(size, align int, zero bool) ([]byte, error) {
	o.mustBeOpen(allocCall(o, zero))
	return o.heap.allocSlow(o, size, align, zero)
}

func (o *LocalCache) freeSlow(b []byte) {
	o.mustBeMade("Cache.Free")
	if cap(b) > 0 {
		o.mustBeOpen("Cache.Free")
	}
	o.heap.freeSlow(o, b)
}

// The same with a pin, or a lock.

func allocPinned(h *Heap, size, align int, zero bool, _ uintptr) ([]byte, error) {
	slot := h.caches.Enter()
	b, _ := allocLeaf(h, size, align, zero, uintptr(slot))
	h.caches.Leave(slot)
	if b != nil {
		return b, nil
	}
	return allocMissed(h, size, align, zero, pin.None)
}

func freePinned(h *Heap, b []byte, _ uintptr) bool {
	slot := h.caches.Enter()
	done := freeLeaf(h, b, uintptr(slot))
	h.caches.Leave(slot)
	return done || freeMissed(h, b, pin.None)
}

func freePointerPinned(h *Heap, p unsafe.Pointer, _, _, _ uintptr) bool {
	slot := h.caches.Enter()
	done := freePointerLeaf(h, p, 0, 0, uintptr(slot))
	h.caches.Leave(slot)
	return done || freePointerMissed(h, p, 0, 0, pin.None)
}

func localAllocPinned(o *LocalCache, size, align int, zero bool, _ uintptr) ([]byte, error) {
	if o.heap != nil {
		slot := o.heap.caches.Enter()
		b, _ := localAllocLeaf(o, size, align, zero, uintptr(slot))
		o.heap.caches.Leave(slot)
		if b != nil {
			return b, nil
		}
	}
	return localAllocMissed(o, size, align, zero, pin.None)
}

func localFreePinned(o *LocalCache, b []byte, _ uintptr) bool {
	done := false
	if o.heap != nil {
		slot := o.heap.caches.Enter()
		done = localFreeLeaf(o, b, uintptr(slot))
		o.heap.caches.Leave(slot)
	}
	return done || localFreeMissed(o, b, pin.None)
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
	left := c.left - int64(size) - watch.Countdown.Extra.Load()
	if left < 0 {
		return false
	}
	c.left = left
	return true
}

// take takes the block that next has found for size bytes. The compiler takes the result for
// non-nil, so a conversion to an array does not read the block: see NonNil.
func (c *cache) take(class uint8, e *entry, st *uint16, size int) unsafe.Pointer {
	*st = uint16(size)
	*c.top(class) = uintptr(unsafe.Pointer(e))
	return vm.NonNil(e.addr)
}

// clearWords clears the size bytes at p, and those up to the next multiple of 8, which are the
// block's too.
func clearWords(p unsafe.Pointer, size int) {
	for ; size >= 64; size -= 64 {
		*(*[8]uint64)(p) = [8]uint64{}
		p = unsafe.Add(p, 64)
	}
	for ; size > 0; size -= 8 {
		*(*uint64)(p) = 0
		p = unsafe.Add(p, 8)
	}
}

// room returns the top of the loaded magazine of a class. It reports false if that is full or
// missing.
func (c *cache) room(class uint8) (top uintptr, ok bool) {
	top = *c.top(class)
	return top, top != *c.end(class)
}

// put frees the block at addr, with the status at st, onto the loaded magazine of its class,
// whose top room has returned.
func (c *cache) put(class uint8, top, addr, st uintptr) {
	*statusAt(st) = freeDirty
	*entryAt(top) = entry{addr, st}
	*c.top(class) = top + entryBytes
}

// top and end are tops[class] and ends[class] without a check of the class, which the page
// map or classOf has named.
func (c *cache) top(class uint8) *uintptr {
	return (*uintptr)(unsafe.Add(unsafe.Pointer(&c.tops), uintptr(class)*unsafe.Sizeof(c.tops[0])))
}

func (c *cache) end(class uint8) *uintptr {
	return (*uintptr)(unsafe.Add(unsafe.Pointer(&c.ends), uintptr(class)*unsafe.Sizeof(c.ends[0])))
}
