// Leaves: Alloc and Free of small blocks in Go.
//
// A leaf is a function in which the goroutine keeps its processor: see runtime.go of package pin.
// It gives up, and has changed nothing, if the cache has no block or no room for one, if the block
// is not a live one of the heap, or if the countdown ends. Then it calls a slow path, whose name
// ends in Missed, and returns its result.
//
// All other calls of a leaf must be inlined. Otherwise pins are used: TestLeavesTakeNoPins.

package heap

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/watch"
)

// Alloc returns a block of size bytes at a multiple of align, zeroed or not.
func (h *Heap) Alloc(size, align int, zero bool) ([]byte, error) {
	return Fast.Alloc(h, size, align, zero, 0)
}

// Free takes back a block.
func (h *Heap) Free(b []byte) { Fast.free(h, b, 0) }

// FreePointer frees the block at p, nothing if p is nil.
func (h *Heap) FreePointer(p unsafe.Pointer) { Fast.freePointer(h, p, 0, 0, 0) }

// Resize changes a block's size where that needs no copy.
func (h *Heap) Resize(b []byte, size int) ([]byte, bool) {
	const call = "Heap.Resize"
	arg.AtLeast(call, "size", size, 0)
	switch {
	case size == 0:
		h.Free(b)
		return []byte{}, true
	case len(b) == 0:
		return nil, false
	}
	return h.resize(call, b, size)
}

// functions are Alloc and Free. Package pin expects at behind four words; callers pass 0. Functions
// that take pins call a leaf with a slot. If its block is nil or its result false, they do the rest
// once they have left the slot.
type functions struct {
	Alloc       func(h *Heap, size, align int, zero bool, at uintptr) ([]byte, error)
	free        func(h *Heap, b []byte, at uintptr) bool
	freePointer func(h *Heap, p unsafe.Pointer, _, _, at uintptr) bool
}

// Fast has the functions in use: assembly where it runs, or else plain. plain has leaves if package
// pin can call them, or else pinned. Alloc is exported for package freehold, whose Alloc could not
// be inlined if it called [Heap.Alloc].
var Fast, plain, pinned functions

func init() {
	pinned = functions{allocPinned, freePinned, freePointerPinned}
	plain = functions{
		Alloc:       pin.Unpinned(returningSlice(allocLeaf), returningSlice(allocMissed), allocPinned),
		free:        pin.Unpinned(freeLeaf, freeMissed, freePinned),
		freePointer: pin.Unpinned(freePointerLeaf, freePointerMissed, freePointerPinned),
	}
	Fast = assembled(plain)
	watch.OnChange(func(counting bool) {
		countInAssembly(counting)
		EachOpen(func(h *Heap) { h.restartCountdowns() })
	})
}

// returningSlice returns f as a function whose first three results are a slice. The results are in
// the same registers. Making a slice in a leaf takes a check, which with -N takes more stack than a
// leaf may, or goes through memory.
func returningSlice(f func(h *Heap, size, align int, zero bool, at uintptr) (p unsafe.Pointer, n, room int, err error)) func(h *Heap, size, align int, zero bool, at uintptr) ([]byte, error) {
	return *(*func(h *Heap, size, align int, zero bool, at uintptr) ([]byte, error))(unsafe.Pointer(&f))
}

//go:nosplit
//go:noinline
//go:nocheckptr
func allocLeaf(h *Heap, size, align int, zero bool, at uintptr) (p unsafe.Pointer, n, room int, err error) {
	slot := pin.SlotAt(at)
	if !small.IsSmall(size, align) || !h.caches.Has(slot) { // a zero Heap has no slot
		return allocMissed(h, size, align, zero, at)
	}
	class := small.ClassOf(size, align)
	c := h.caches.EntryAt(slot)
	e, was := c.Peek(class)
	left := c.after(size)
	if !small.IsFree(was) || left < 0 {
		return allocMissed(h, size, align, zero, at)
	}
	c.left = left
	p = c.Pop(class, e, size)
	if zero && was != small.FreeZero {
		clearWords(p, size)
	}
	return p, size, size, nil
}

//go:nosplit
//go:noinline
//go:nocheckptr
func freeLeaf(h *Heap, b []byte, at uintptr) bool {
	slot := pin.SlotAt(at)
	addr := small.AddrOf(b)
	word, off, ok := small.PageWord(addr, h.mapID)
	if !ok {
		return freeMissed(h, b, at)
	}
	// The status of a free block is larger than small.MaxSize.
	st, class, ok := small.StatusIn(word, off)
	if !ok || len(b) > small.MaxSize || int(*small.StatusAt(st)) != len(b) {
		return freeMissed(h, b, at)
	}
	if !h.caches.Has(slot) {
		return freeMissed(h, b, at)
	}
	c := h.caches.EntryAt(slot)
	top, ok := c.Room(class)
	if !ok {
		return freeMissed(h, b, at)
	}
	c.Push(class, top, addr, st)
	return true
}

//go:nosplit
//go:noinline
//go:nocheckptr
func freePointerLeaf(h *Heap, p unsafe.Pointer, _, _, at uintptr) bool {
	slot := pin.SlotAt(at)
	word, off, ok := small.PageWord(uintptr(p), h.mapID)
	if !ok {
		return freePointerMissed(h, p, 0, 0, at)
	}
	// The status of a live block is its size, unless it is watched.
	st, class, ok := small.StatusIn(word, off)
	if !ok || *small.StatusAt(st) > small.MaxSize {
		return freePointerMissed(h, p, 0, 0, at)
	}
	if !h.caches.Has(slot) {
		return freePointerMissed(h, p, 0, 0, at)
	}
	c := h.caches.EntryAt(slot)
	top, ok := c.Room(class)
	if !ok {
		return freePointerMissed(h, p, 0, 0, at)
	}
	c.Push(class, top, uintptr(p), st)
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
	if len(b) > small.MaxSize {
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

// clearWords clears the size bytes at p, rounded up to a multiple of 8. The block is no shorter.
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
