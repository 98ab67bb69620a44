// Large blocks: runs of pages, one block each.
//
// They grow in place where the pages behind them are free. From moveBytes on,
// and where the system can, their pages are moved to a longer run instead of
// being copied.

package heap

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

const (
	maxSize   = math.MaxInt/2 - segmentBytes // more is no size that an address space has
	moveBytes = 1 << 20
)

// largeCount counts a heap's large blocks. The heap's mu guards it.
type largeCount struct {
	blocks int
	bytes  uintptr // their pages
}

// allocLarge is Alloc for what no class serves, and where bad arguments end.
func (h *Heap) allocLarge(size, align int, zero bool) ([]byte, error) {
	if size < 0 {
		panic(fmt.Sprintf("freehold: Alloc of %d bytes", size))
	}
	if align <= 0 || align&(align-1) != 0 {
		panic(fmt.Sprintf("freehold: Alloc with alignment %d, which is no power of two", align))
	}
	if h.closed.Load() {
		panic(h.closedMessage("Alloc"))
	}
	if size == 0 {
		return []byte{}, nil
	}
	if size > maxSize || align > maxSize || uintptr(size)+uintptr(align) > maxSize {
		return nil, fmt.Errorf("%w: %d bytes at a multiple of %d", ErrOutOfMemory, size, align)
	}
	var b []byte
	err := h.withReclaim(roundUp(uintptr(size), pageBytes)/pageBytes, func() (err error) {
		b, err = h.newLarge(size, align, zero)
		return err
	})
	if err != nil {
		return nil, h.refused(err)
	}
	return b, nil
}

// newLarge returns a large block.
func (h *Heap) newLarge(size, align int, zero bool) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, isZero, err := h.newRun(roundUp(uintptr(size), pageBytes)/pageBytes, uintptr(align))
	if err != nil {
		return nil, err
	}
	h.makeLarge(s, uintptr(size), uint8(bits.TrailingZeros(uint(align))))
	if zero && !isZero {
		h.mu.Unlock()
		h.clearUsed(s)
		h.mu.Lock()
	}
	h.occupy(s)
	return unsafe.Slice((*byte)(vm.Pointer(s.base)), size), nil
}

// makeLarge makes s, which describes a run just taken, a large block.
func (h *Heap) makeLarge(s *span, size uintptr, align uint8) {
	s.whole(largeRun)
	s.size, s.align = size, align
	*addresses.regionOf(s.base).page(s.base) = s
	h.large.blocks++
	h.large.bytes += s.bytes()
}

// forgetLarge undoes makeLarge.
func (h *Heap) forgetLarge(s *span) {
	*addresses.regionOf(s.base).page(s.base) = nil
	h.large.blocks--
	h.large.bytes -= s.bytes()
}

// freeLarge is Free for what no class serves, and where misuse ends.
func (h *Heap) freeLarge(b []byte) {
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	if cap(b) == 0 && addresses.regionOf(addr) == nil {
		return
	}
	h.mu.Lock()
	s := spanAt(addr)
	if s == nil || s.kind != largeRun || !s.holds(h, addr, b) {
		h.mu.Unlock()
		h.misused("Free", b)
	}
	defer h.mu.Unlock()
	h.forgetLarge(s)
	h.dropRun(s)
}

// dropRun frees a run whose page words are 0. h.mu is held; it is dropped
// while the system works.
func (h *Heap) dropRun(s *span) {
	r := addresses.regionOf(s.base)
	if s.apart != 0 || h.wholePages {
		h.mu.Unlock()
		low, high, err := h.discard(s)
		h.mu.Lock()
		if err != nil {
			s.whole(lostRun)
			s.setApart() // so that retryLost maps it anew
			*r.page(s.base) = s
			h.lost.push(s)
			h.wake()
			return
		}
		if low < high {
			r.dirty.clearRange(r.pageIndex(low), (high-low)/pageBytes)
			h.uncharge(high - low)
		}
	}
	s.whole(freeRun)
	h.freeRun(s)
	h.wake()
}

// retryLost frees the lost runs that the system maps now. h.tending is held.
func (h *Heap) retryLost() {
	h.mu.Lock()
	defer h.mu.Unlock()
	lost := h.lost
	h.lost = list{}
	for lost.head != 0 {
		s := spanPtr(lost.head)
		lost.remove(s)
		*addresses.regionOf(s.base).page(s.base) = nil
		h.dropRun(s)
	}
}

// discard gives a run's memory back; the pages in [low, high) read zero then.
// Advice is gone then, and a run apart is one mapping with its neighbours again.
// An error says that the run cannot be used.
func (h *Heap) discard(s *span) (low, high uintptr, err error) {
	if s.apart == 0 {
		low, high, err = decommit(s.base, s.bytes())
		if err != nil {
			return 0, 0, nil // as it was
		}
		return roundUp(low, pageBytes), high &^ (pageBytes - 1), nil
	}
	os := vm.PageBytes()
	low, high = roundUp(s.base, os), s.end()&^(os-1)
	if low >= high {
		return 0, 0, nil
	}
	if vm.Renew(low, high-low) == nil {
		if h.hugePages {
			vm.Advise(low, high-low, vm.HugePages) // best effort
		}
		vm.Name(low, high-low, h.name)
		return roundUp(low, pageBytes), high &^ (pageBytes - 1), nil
	}
	return 0, 0, vm.Commit(low, high-low)
}

// Resize changes a block's size where that needs no copy.
func (h *Heap) Resize(b []byte, size int) ([]byte, bool) {
	if size < 0 {
		panic(fmt.Sprintf("freehold: Resize to %d bytes", size))
	}
	if len(b) == 0 || size == 0 {
		if size == 0 {
			h.Free(b)
			return []byte{}, true
		}
		return nil, false
	}
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	s := spanAt(addr)
	if s == nil || !s.holds(h, addr, b) {
		h.misused("Resize", b)
	}
	if s.kind == largeRun {
		return h.resizeLarge(s, size)
	}
	if uintptr(size) > s.size || uintptr(size) <= s.size/2 {
		return nil, false
	}
	place := h.places.Enter()
	e := liveEntry(h, b)
	if e.addr != 0 {
		*state(e.state) = uint16(size)
	}
	h.places.Leave(place)
	if e.addr == 0 {
		h.misused("Resize", b)
	}
	return unsafe.Slice((*byte)(vm.Pointer(addr)), size), true
}

// holds reports whether b is exactly a live block in s.
func (s *span) holds(h *Heap, addr uintptr, b []byte) bool {
	if s.owner != h.id || len(b) == 0 {
		return false
	}
	switch s.kind {
	case largeRun:
		return s.base == addr && s.size == uintptr(len(b))
	case blockRun:
		i := s.index(addr)
		return s.base+i*s.size == addr && len(b) <= maxSmall && int(*state(s.stateOf(i))) == len(b)
	}
	return false
}

func (h *Heap) resizeLarge(s *span, size int) ([]byte, bool) {
	// At the limit a small block may be pages: those that it has are as good as
	// another's.
	if size > maxSize || size <= maxSmall && !h.wholePages && (s.size > maxSmall || uintptr(size) > s.bytes()) {
		return nil, false
	}
	n := roundUp(uintptr(size), pageBytes) / pageBytes
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case n < s.pages:
		h.cut(s, n)
	case n > s.pages && !h.extend(s, n-s.pages):
		if s = h.move(s, n); s == nil {
			return nil, false
		}
	}
	s.size = uintptr(size)
	return unsafe.Slice((*byte)(vm.Pointer(s.base)), size), true
}

// cut frees the pages of a large block from the nth on. Without memory to
// describe them they stay.
func (h *Heap) cut(s *span, n uintptr) {
	tail, err := h.newSpan()
	if err != nil {
		return
	}
	r := addresses.regionOf(s.base)
	edges := [...]uintptr{s.base + (n-1)*pageBytes, s.base + n*pageBytes}
	tables := r.tableCost(edges[:]...)
	if h.charge(tables) != nil {
		h.freeSpan(tail)
		return
	}
	h.noteTables(r, tables, edges[:]...)
	tail.base, tail.pages, tail.apart = edges[1], s.pages-n, s.apart
	h.large.bytes -= tail.bytes()
	s.pages = n
	h.dropRun(tail)
}

// extend adds the n pages behind a large block to it, if they are free or were
// never handed out.
func (h *Heap) extend(s *span, n uintptr) bool {
	r := addresses.regionOf(s.base)
	next := h.freeNeighbour(r, s.end())
	if next == nil || next.pages < n {
		from := s.end()
		if next != nil {
			from = next.end()
		}
		if h.mayCharge(n) != nil || h.growAt(from, n) != nil {
			return false
		}
		next = h.freeNeighbour(r, s.end())
	}
	dirty := r.dirty.count(r.pageIndex(next.base), n)
	end := next.base + n*pageBytes
	edges := [...]uintptr{end - pageBytes, min(end, next.end()-pageBytes)}
	tables := r.tableCost(edges[:]...)
	cost := (n-dirty)*pageBytes + tables
	if h.charge(cost) != nil {
		return false
	}
	if !vm.HolesReadZero && dirty < n && commit(next.base, n*pageBytes) != nil {
		h.uncharge(cost)
		return false
	}
	h.noteTables(r, tables, edges[:]...)
	h.removeFree(r, next)
	r.dirty.setRange(r.pageIndex(next.base), n)
	if next.pages -= n; next.pages > 0 {
		next.base += n * pageBytes
		next.dirty -= dirty
		h.addFree(r, next)
	} else {
		h.freeSpan(next)
	}
	h.noteTaken(n, n-dirty)
	s.pages += n
	h.large.bytes += n * pageBytes
	return true
}

// move moves a large block's pages to a run of n pages, and returns its span;
// nil if that cannot be done. h.mu is held; it is dropped while the system
// works. For that time both runs count against the limit.
func (h *Heap) move(s *span, n uintptr) *span {
	os := vm.PageBytes()
	if s.bytes() < moveBytes || s.bytes()%os != 0 || s.base%os != 0 {
		return nil
	}
	to, _, err := h.newRun(n, max(1<<s.align, os))
	if err != nil {
		return nil
	}
	h.occupy(to)
	h.mu.Unlock()
	err = vm.Move(to.base, s.base, s.bytes())
	h.mu.Lock()
	if !errors.Is(err, vm.ErrUnsupported) {
		to.setApart()
	}
	if err != nil {
		h.dropRun(to)
		return nil
	}
	size, align := s.size, s.align
	h.forgetLarge(s)
	s.setApart() // what is left of the mapping there is
	h.dropRun(s)
	h.makeLarge(to, size, align)
	to.setApart()
	return to
}
