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
	Alloc       func(h *Heap, size, align int, zero bool, at uintptr) ([]byte, error)
	free        func(h *Heap, b []byte, at uintptr) bool
	freePointer func(h *Heap, p unsafe.Pointer, _, _, at uintptr) bool
}

// Fast is what is called: assembly where it runs, else plain, which are leaves if package pin
// knows how to call them, else pinned. Alloc is exported for package freehold, whose
// Alloc could not be inlined if it called [Heap.Alloc].
var Fast, plain, pinned functions

func init() {
	pinned = functions{allocPinned, freePinned, freePointerPinned}
	plain = functions{
		Alloc:       pin.Unpinned(returningSlice(allocLeaf), returningSlice(allocMissed), allocPinned),
		free:        pin.Unpinned(freeLeaf, freeMissed, freePinned),
		freePointer: pin.Unpinned(freePointerLeaf, freePointerMissed, freePointerPinned),
	}
	Fast = assembled(plain)
}

// returningSlice returns f as a function whose first three results are a slice, which are
// returned in the same places. To make a slice in a leaf takes a check, which takes more stack
// with -N than a leaf may, or goes through memory.
func returningSlice(f func(h *Heap, size, align int, zero bool, at uintptr) (p unsafe.Pointer, n, room int, err error)) func(h *Heap, size, align int, zero bool, at uintptr) ([]byte, error) {
	return *(*func(h *Heap, size, align int, zero bool, at uintptr) ([]byte, error))(unsafe.Pointer(&f))
}

//go:nosplit
//go:noinline
//go:nocheckptr
func allocLeaf(h *Heap, size, align int, zero bool, at uintptr) (p unsafe.Pointer, n, room int, err error) {
	slot := pin.SlotAt(at)
	if !isSmall(size, align) || !h.caches.Has(slot) { // a zero Heap has no slot
		return allocMissed(h, size, align, zero, at)
	}
	class := smallClass(size, align)
	c := h.caches.EntryAt(slot)
	e, was := c.next(class)
	left := c.after(size)
	if was < freeZero || left < 0 {
		return allocMissed(h, size, align, zero, at)
	}
	c.left = left
	p = c.take(class, e, size)
	if zero && was != freeZero {
		clearWords(p, size)
	}
	return p, size, size, nil
}

//go:nosplit
//go:noinline
//go:nocheckptr
func freeLeaf(h *Heap, b []byte, at uintptr) bool {
	slot := pin.SlotAt(at)
	addr := addrOf(b)
	word, off, ok := pageWord(addr, h.mapID)
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
	c := h.caches.EntryAt(slot)
	top, ok := c.room(class)
	if !ok {
		return freeMissed(h, b, at)
	}
	c.put(class, top, addr, st)
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
	c := h.caches.EntryAt(slot)
	top, ok := c.room(class)
	if !ok {
		return freePointerMissed(h, p, 0, 0, at)
	}
	c.put(class, top, uintptr(p), st)
	return true
}

// The slow paths. They are not inlined, so that leaves call nothing else.

//go:noinline
func allocMissed(h *Heap, size, align int, zero bool, at uintptr) (p unsafe.Pointer, n, room int, err error) {
	if pin.Held(at) {
		return nil, 0, 0, nil
	}
	b, err := h.allocMissed(size, align, zero)
	return unsafe.Pointer(unsafe.SliceData(b)), len(b), cap(b), err
}

//go:noinline
func freeMissed(h *Heap, b []byte, at uintptr) bool {
	if pin.Held(at) {
		return false
	}
	if len(b) > maxSmall {
		h.freeRun(b)
	} else {
		h.freeSlow(b)
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

// allocMissed does what a leaf left: large blocks have a leaf of their own.
func (h *Heap) allocMissed(size, align int, zero bool) ([]byte, error) {
	if size > maxSmall {
		return h.allocRun(size, align, zero)
	}
	return h.allocSlow(size, align, zero)
}

// The same with a pin, or with a lock.

func allocPinned(h *Heap, size, align int, zero bool, _ uintptr) ([]byte, error) {
	slot := h.caches.Enter()
	p, _, _, _ := allocLeaf(h, size, align, zero, uintptr(slot))
	h.caches.Leave(slot)
	if p != nil {
		return unsafe.Slice((*byte)(p), size), nil
	}
	return h.allocMissed(size, align, zero)
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

// next returns the topmost entry of a class and the status of its block, which is not free if
// there is none, or if the block was freed twice.
func (c *cache) next(class uint8) (e *entry, was uint16) {
	e = entryAt(*c.top(class) - entryBytes)
	return e, *statusAt(e.status)
}

// after returns the countdown after size bytes, and what each block counts more. It is below 0
// if this block is an event.
func (c *cache) after(size int) int64 {
	left := c.left
	if watch.Counting() {
		left -= int64(size) + watch.Countdown.Extra.Load()
	}
	return left
}

// take takes the block that next has found for size bytes.
func (c *cache) take(class uint8, e *entry, size int) unsafe.Pointer {
	*statusAt(e.status) = uint16(size)
	*c.top(class) = uintptr(unsafe.Pointer(e))
	return vm.NonNil(e.addr)
}

// clearWords clears the size bytes at p, and those up to the next multiple of 8, which are the
// block's too.
func clearWords(p unsafe.Pointer, size int) {
	for ; size >= 64; size -= 64 {
		w := (*[8]uint64)(p)
		w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7] = 0, 0, 0, 0, 0, 0, 0, 0
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
