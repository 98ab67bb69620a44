// Debug builds: free memory holds 0xDB.
//
// Free fills a small block, and Alloc checks the fill. Free also checks the bytes
// between the end of the block and the size of its class, or the end of the last page
// of a large block. The slow paths check the
// spans of their class, and the page heap each free run that it links.
//
// Pages are filled when they become free, and the dirty ones among them are checked
// when they are taken again. A page that a purge gave back reads zero, and is dirty
// if the system did a part and refused the rest. So a page may also be zero
// throughout.

//go:build freehold_debug

package heap

import (
	"bytes"
	"fmt"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/vm"
)

const (
	debugging = true

	checkedSpans = 8 // in each slow path
)

// poison fills the size bytes at addr.
func poison(addr, size uintptr) { fillPoison(block(addr, int(size), false)) }

// mustBeUntouched panics if a free block was written. was is its free status: a block
// never handed out reads zero, any other holds the fill.
func (h *Heap) mustBeUntouched(addr uintptr, class uint8, was uint16) {
	want := byte(poisonByte)
	if was == freeZero {
		want = 0
	}
	for i, c := range block(addr, int(classes[class].size), false) {
		if c != want {
			panic(fmt.Sprintf("freehold: heap %q: the byte at %#x, %s into a free block, was written: after its Free, or beyond the end of another block", h.pages.name, addr+uintptr(i), arg.Bytes(i)))
		}
	}
}

// mustEndUntouched panics if the bytes from the end of a live block to the size of its
// class, or to the end of its last page, were written. They are 0 or the fill.
func (h *Heap) mustEndUntouched(b []byte) {
	addr, size := uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))
	s := spanAt(addr)
	switch {
	case s == nil:
		return
	case s.isLarge(h.pages.id, addr, size):
		size = roundUp(size, pageBytes)
	case liveEntry(h, b).addr != 0 || h.sampledSize(s, addr) == size:
		size = s.size
	}
	for i, c := range block(addr, int(size), false)[len(b):] {
		if c != 0 && c != poisonByte {
			h.writtenBeyond(b, i+1, "")
		}
	}
}

// poisonEnd fills the bytes behind a large block, up to the end of its last page.
func poisonEnd(b []byte) {
	size := uintptr(len(b))
	poison(uintptr(unsafe.Pointer(unsafe.SliceData(b)))+size, roundUp(size, pageBytes)-size)
}

// eachDirty calls f for those of n pages that hold memory. mu is held.
func (r *region) eachDirty(addr, n uintptr, f func(addr, size uintptr)) {
	for i, end := r.pageIndex(addr), r.pageIndex(addr)+n; i < end; {
		from := r.dirty.next(i, end, true)
		i = r.dirty.next(from, end, false)
		f(r.base+from*pageBytes, (i-from)*pageBytes)
	}
}

// poisonDirty fills the pages of a run that becomes free. mu is held.
func poisonDirty(s *span) { addresses.regionOf(s.base).eachDirty(s.base, s.pages, poison) }

// mustBeUnused checks n pages of a free run. It panics once for a write: the heap works
// on. mu is held.
func (p *pageHeap) mustBeUnused(r *region, addr, n uintptr) {
	unit := min(vm.PageBytes(), pageBytes)
	r.eachDirty(addr, n, func(addr, size uintptr) {
		for end := addr + size; addr < end; addr += unit {
			page := block(addr, int(unit), false)
			want := byte(poisonByte)
			if bytes.IndexByte(page, poisonByte) < 0 {
				want = 0
			}
			if bytes.Count(page, []byte{want}) == len(page) {
				continue
			}
			for i, c := range page {
				if c != want {
					poison(addr, end-addr)
					panic(fmt.Sprintf("freehold: heap %q: the byte at %#x, in free pages, was written: after the Free of a large block, or beyond the end of one", p.name, addr+uintptr(i)))
				}
			}
		}
	})
}

// check panics if c or one of its first spans is not as it should be. c.mu is held.
func (c *central) check(h *Heap) { h.pages.mustBeSound(c.verify(h, checkedSpans)) }

// check panics if a free run is not as it should be. mu is held.
func (p *pageHeap) check(r *region, s *span) { p.mustBeSound(p.verifyFree(r, s)) }

func (p *pageHeap) mustBeSound(err error) {
	if err != nil {
		panic(fmt.Sprintf("freehold: heap %q: %v", p.name, err))
	}
}
