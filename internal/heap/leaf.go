// Leaves: Alloc and Free from a cache, in Go.
//
// A leaf is a function in which the goroutine stays on its processor: see runtime.go of package
// pin. It misses if the cache has no block or no room for one, if the block is not a live block of
// the heap, or if the countdown ends. A leaf that misses has changed nothing. A leaf for small
// blocks then calls its slow path, whose name ends in Missed, and returns the result. That path
// calls the leaf for large blocks: one leaf for both would take more stack than a leaf may use.
//
// The compiler must inline all other calls in a leaf. Otherwise package pin uses the pinned
// functions: TestLeavesTakeNoPins detects that.

package heap

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/watch"
)

// Alloc returns a block of size bytes at a multiple of align, zeroed or not.
func (h *Heap) Alloc(size, align int, zero bool) ([]byte, error) {
	code := &Fast.Alloc
	return (*(*func(h *Heap, size, align int, zero bool) ([]byte, error))(unsafe.Pointer(&code)))(h, size, align, zero)
}

// Malloc returns size bytes at a multiple of 16, or nil if there is no memory. Size 0 gives a block
// of one byte.
func (h *Heap) Malloc(size int) unsafe.Pointer {
	code := &Fast.Malloc
	return (*(*func(h *Heap, size int) unsafe.Pointer)(unsafe.Pointer(&code)))(h, size)
}

// Free takes back a block.
func (h *Heap) Free(b []byte) {
	code := &Fast.Free
	(*(*func(h *Heap, b []byte))(unsafe.Pointer(&code)))(h, b)
}

// FreePointer frees the block at p. It is a no-op if p is nil.
func (h *Heap) FreePointer(p unsafe.Pointer) {
	code := &Fast.FreePointer
	(*(*func(h *Heap, p unsafe.Pointer))(unsafe.Pointer(&code)))(h, p)
}

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

// functions are the calls of one kind: leaves, pinned functions or assembly. A leaf has another
// argument, at: see pin.Unpinned. A pinned function enters a slot and passes it to the leaf as at.
// If that leaf misses, its slow path returns nil or false at once, and the pinned function does the
// work after it has left the slot.
type functions struct {
	alloc       func(h *Heap, size, align int, zero bool) ([]byte, error)
	malloc      func(h *Heap, size int) unsafe.Pointer
	free        func(h *Heap, b []byte)
	freePointer func(h *Heap, p unsafe.Pointer)
}

// runFunctions are the calls for large blocks, which return nil or false if they miss.
type runFunctions struct {
	allocRun func(h *Heap, size, align int) unsafe.Pointer
	freeRun  func(h *Heap, addr uintptr, size int) bool
}

// inGo has the leaves where package pin can call them, or else the pinned functions.
var inGo struct {
	functions // first: the assembly relies on it
	runFunctions
}

// idle and counting have the functions in assembly where it runs, or else inGo's. In counting,
// alloc and malloc count down to the next watched block. In idle, the assembly does not.
var idle, counting functions

// Fast has the functions in use: counting's while blocks are chosen, and idle's otherwise. A call of
// a func variable loads the address of a closure, and from that the address of the code. Fast has
// the closures themselves, whose addresses are constants, so a call loads only the address of the
// code. Package freehold makes func values of Fast too, so that its methods are inlined. Their
// receiver is its own Heap, whose first field is this package's Heap.
var Fast struct{ Alloc, Malloc, Free, FreePointer closure }

// closure has the words of a closure: the address of the code, and for a leaf what package pin
// adds.
type closure [2]uintptr

// closureOf returns the closure of f, which has at most two words.
func closureOf[F any](f F) closure { return **(**closure)(unsafe.Pointer(&f)) }

func init() {
	inGo.functions = functions{
		alloc:       pin.Unpinned(allocLeaf, allocMissed, allocPinned),
		malloc:      mallocInGo,
		free:        pin.Unpinned(freeLeaf, freeMissed, freePinned),
		freePointer: pin.Unpinned(freePointerLeaf, freePointerMissed, freePointerPinned),
	}
	inGo.runFunctions = runFunctions{
		allocRun: pin.Unpinned(allocRunLeaf, allocRunLeaf, allocRunPinned),
		freeRun:  pin.Unpinned(freeRunLeaf, freeRunLeaf, freeRunPinned),
	}
	idle, counting = inAssembly(inGo.functions)
	Fast.Alloc, Fast.Malloc = closureOf(idle.alloc), closureOf(idle.malloc)
	Fast.Free, Fast.FreePointer = closureOf(idle.free), closureOf(idle.freePointer)
	watch.OnChange(func(counts bool) {
		countDown(counts)
		EachOpen(func(h *Heap) { h.restartCountdowns() })
	})
}

// countDown sets Fast.Alloc and Fast.Malloc to counting's or to idle's. Only the addresses of the
// code differ, so other goroutines may call them meanwhile.
func countDown(counts bool) {
	to := &idle
	if counts {
		to = &counting
	}
	atomic.StoreUintptr(&Fast.Alloc[0], closureOf(to.alloc)[0])
	atomic.StoreUintptr(&Fast.Malloc[0], closureOf(to.malloc)[0])
}

// allocLeaf returns a slice in three results, which use the same registers. It does not make the
// slice itself: unsafe.Slice has a check that, without optimizations (-N), takes more stack than a
// leaf may use, and a slice header would go through memory.
//
//go:nosplit
//go:noinline
//go:nocheckptr
func allocLeaf(h *Heap, size, align int, zero bool, at uintptr) (p unsafe.Pointer, n, room int, err error) {
	slot := pin.SlotAt(at)
	if !small.IsSmall(size, align) || !h.caches.Has(slot) { // a zero Heap has no slot
		return allocMissed(h, size, align, zero, at)
	}
	class := small.ClassOf(size, align)
	c := h.caches.ValueAt(slot)
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
	c := h.caches.ValueAt(slot)
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
	c := h.caches.ValueAt(slot)
	top, ok := c.Room(class)
	if !ok {
		return freePointerMissed(h, p, 0, 0, at)
	}
	c.Push(class, top, uintptr(p), st)
	return true
}

//go:nosplit
//go:noinline
//go:nocheckptr
func allocRunLeaf(h *Heap, size, align int, _, at uintptr) unsafe.Pointer {
	c := h.caches.Value(pin.SlotAt(at))
	if c == nil { // of the zero Heap
		return nil
	}
	s := c.runs.find(uintptr(size), uintptr(align))
	left := c.after(size)
	if s == nil || left < 0 {
		return nil
	}
	c.left = left
	return c.runs.take(s, uintptr(size))
}

//go:nosplit
//go:noinline
//go:nocheckptr
func freeRunLeaf(h *Heap, addr uintptr, size int, _, at uintptr) bool {
	s := pages.Addresses.First.Span(addr)
	if s == nil || !s.IsLarge(h.pages.ID, addr, uintptr(size)) || !isPlain(s) {
		return false
	}
	c := h.caches.Value(pin.SlotAt(at))
	if !c.runs.hasRoom(s.Pages()) || !s.Claim(addr, uintptr(size)) {
		return false
	}
	c.runs.keep(s)
	return true
}

// The slow paths of the leaves. They are not inlined, so a leaf calls nothing else.

//go:noinline
func allocMissed(h *Heap, size, align int, zero bool, at uintptr) (p unsafe.Pointer, n, room int, err error) {
	if pin.Held(at) {
		return nil, 0, 0, nil
	}
	b, err := h.allocMissed(size, align, zero)
	return unsafe.Pointer(unsafe.SliceData(b)), len(b), cap(b), err
}

func (h *Heap) allocMissed(size, align int, zero bool) ([]byte, error) {
	if size > small.MaxSize {
		if p := inGo.allocRun(h, size, align); p != nil {
			return h.cleared(p, size, zero), nil
		}
	}
	return h.allocSlow(size, align, zero)
}

//go:noinline
func freeMissed(h *Heap, b []byte, at uintptr) bool {
	if pin.Held(at) {
		return false
	}
	if len(b) <= small.MaxSize || !inGo.freeRun(h, small.AddrOf(b), len(b)) {
		h.freeSlow(b)
	}
	return true
}

//go:noinline
func freePointerMissed(h *Heap, p unsafe.Pointer, _, _, at uintptr) bool {
	if pin.Held(at) {
		return false
	}
	addr := uintptr(p)
	s := pages.Addresses.First.Span(addr)
	if s == nil || !inGo.freeRun(h, addr, int(s.Size)) {
		h.freePointerSlow(p)
	}
	return true
}

// The functions that hold a slot by a pin, or by a lock: see package pin.

func allocPinned(h *Heap, size, align int, zero bool) ([]byte, error) {
	slot := h.caches.Enter()
	p, _, _, _ := allocLeaf(h, size, align, zero, uintptr(slot))
	h.caches.Leave(slot)
	if p != nil {
		return unsafe.Slice((*byte)(p), size), nil
	}
	return h.allocMissed(size, align, zero)
}

// mallocInGo is Malloc by any kind of Alloc in Go.
func mallocInGo(h *Heap, size int) unsafe.Pointer {
	if size <= 0 {
		size = atLeastOne("Heap.Malloc", size)
	}
	b, _ := inGo.alloc(h, size, mallocAlign, false)
	return unsafe.Pointer(unsafe.SliceData(b))
}

func freePinned(h *Heap, b []byte) {
	slot := h.caches.Enter()
	done := freeLeaf(h, b, uintptr(slot))
	h.caches.Leave(slot)
	if !done {
		freeMissed(h, b, pin.None)
	}
}

func freePointerPinned(h *Heap, p unsafe.Pointer) {
	slot := h.caches.Enter()
	done := freePointerLeaf(h, p, 0, 0, uintptr(slot))
	h.caches.Leave(slot)
	if !done {
		freePointerMissed(h, p, 0, 0, pin.None)
	}
}

func allocRunPinned(h *Heap, size, align int) unsafe.Pointer {
	slot := h.caches.Enter()
	p := allocRunLeaf(h, size, align, 0, uintptr(slot))
	h.caches.Leave(slot)
	return p
}

func freeRunPinned(h *Heap, addr uintptr, size int) bool {
	slot := h.caches.Enter()
	done := freeRunLeaf(h, addr, size, 0, uintptr(slot))
	h.caches.Leave(slot)
	return done
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
