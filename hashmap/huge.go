// Huge: the greatest tables of a large map, packed in huge pages.
//
//	block   | page | page | ... |       of the parent, with AdviceHugePages
//	page    | table | table | ... |     2 MiB
//
// Huge pages save TLB misses in a large map. A small map would take more memory with them, so only
// tables beyond hugeFrom use them.
//
// The kernel clears a huge page at its first touch: 0.2 ms, or 4 ms in a virtual machine. So a
// goroutine populates the next page when half of the current one is used. If the page is not ready
// in time, a table is a block of its own. A Map moves such a table to a huge page when it splits.
//
// If the parent refuses a block, or the system a page, the map tries again once its tables have grown
// by an eighth. If the system has no huge pages, it does not.
//
// A block is one or two mappings of the process, and Linux allows 65,530. So blocks grow: each
// sixteen blocks, by a page.

package hashmap

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/seam"
	"github.com/freehold-go/freehold/internal/vm"
)

const (
	hugePage = 2 << 20
	hugeFrom = 8 << 20 // bytes of tables

	againShare = 8 // tables grow by 1/againShare after a refusal
)

// hugeTables is memory for tables. The zero value has none.
type hugeTables struct {
	size   uintptr // the most of a table; 0 if there are no huge pages
	page   uintptr // hugePage, except in tests
	from   uintptr // hugeFrom, except in tests
	again  uintptr // bytes of tables with which start tries again after a refusal
	advise func(b []byte, a vm.Advice) error

	left   extent    // free memory of the current page
	next   *nextPage // the page after it, or nil
	unused extent    // pages of the newest block
	blocks []extent  // by address
	bytes  int       // of all blocks
}

// An extent is a range of addresses.
type extent struct{ from, to uintptr }

func (x extent) size() uintptr { return x.to - x.from }

func (x extent) compare(addr uintptr) int { return cmp.Compare(x.from, addr) }

func (x extent) memory() []byte { return unsafe.Slice((*byte)(pointer(x.from)), int(x.size())) }

// cut removes the first n bytes of x and returns them.
func (x *extent) cut(n uintptr) extent {
	first := extent{x.from, x.from + n}
	x.from += n
	return first
}

// nextPage is a page that a goroutine populates.
type nextPage struct {
	extent
	done chan struct{} // closed after err is set
	err  error
}

// init prepares h for tables of up to size bytes.
func (h *hugeTables) init(size uintptr) {
	h.page, h.from, h.advise = hugePage, hugeFrom, pages.Advise
	if size <= hugePage/16 {
		h.size = size
	}
}

// take returns size bytes for a table, or nil. tables is the size of all tables of the map.
func (h *hugeTables) take(parent freehold.Allocator, size, tables uintptr) unsafe.Pointer {
	if tables < h.from || size > h.size {
		return nil
	}
	size = vm.RoundUp(size, tableAlign)
	if h.next == nil && h.left.size() <= h.page/2 {
		h.start(parent, tables)
	}
	if h.left.size() < size {
		h.turn(tables)
	}
	if h.left.size() < size || h.size == 0 {
		return nil
	}
	return pointer(h.left.cut(size).from)
}

// giveBack takes back a table of size bytes, and reports whether it is in one of the blocks. Only the
// memory of the last table that was taken is used again.
func (h *hugeTables) giveBack(table, size uintptr) bool {
	if !h.has(table) {
		return false
	}
	if table+vm.RoundUp(size, tableAlign) == h.left.from {
		h.left.from = table
	}
	return true
}

// start starts a goroutine that populates the next page by a system call. A touch would fault if
// the map ended with its parent meanwhile.
func (h *hugeTables) start(parent freehold.Allocator, tables uintptr) {
	if tables < h.again {
		return
	}
	if h.unused.size() == 0 {
		if err := h.grow(parent); err != nil {
			h.refused(err, tables)
			return
		}
	}
	next, advise := &nextPage{extent: h.unused.cut(h.page), done: make(chan struct{})}, h.advise
	h.next = next
	go func() {
		defer close(next.done)
		next.err = advise(next.memory(), vm.Populate)
		runtime.KeepAlive(h) // h is part of the map: see Options.Collect
	}()
}

// refused notes an error of the parent or the system. It makes start wait, or take return nil for
// good.
func (h *hugeTables) refused(err error, tables uintptr) {
	h.again = tables + max(tables/againShare, h.page)
	if errors.Is(err, vm.ErrUnsupported) {
		h.size = 0
	}
}

// grow adds a block.
func (h *hugeTables) grow(parent freehold.Allocator) error {
	b, err := parent.Alloc(int(h.page)*(1+len(h.blocks)/16), int(h.page))
	if err != nil {
		return err
	}
	h.advise(b, vm.DontNeed) // a page with resident small pages would not become a huge one
	if err := h.advise(b, vm.HugePages); err != nil {
		parent.Free(b)
		return err
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	h.unused = extent{at, at + uintptr(len(b))}
	i, _ := slices.BinarySearchFunc(h.blocks, at, extent.compare)
	h.blocks = slices.Insert(h.blocks, i, h.unused)
	h.bytes += len(b)
	return nil
}

// turn makes the next page the current one, if it is populated. A page that could not be populated
// is unused again.
func (h *hugeTables) turn(tables uintptr) {
	if h.next == nil {
		return
	}
	select {
	case <-h.next.done:
	default:
		return
	}
	next := h.next
	h.next = nil
	if next.err != nil {
		h.refused(next.err, tables)
		h.unused.from = next.from
		return
	}
	h.left = next.extent
}

// needed returns the page that the next table needs, or nil.
func (h *hugeTables) needed() *nextPage {
	if h.left.size() < h.size {
		return h.next
	}
	return nil
}

func (n *nextPage) wait() {
	if n != nil {
		<-n.done
	}
}

// has reports whether a table is in one of the blocks.
func (h *hugeTables) has(table uintptr) bool {
	i, found := slices.BinarySearchFunc(h.blocks, table, extent.compare)
	return found || i > 0 && table < h.blocks[i-1].to
}

// close returns the blocks to the parent.
func (h *hugeTables) close(parent freehold.Allocator) {
	h.next.wait()
	for _, x := range h.blocks {
		parent.Free(x.memory())
	}
	*h = hugeTables{size: h.size, page: h.page, from: h.from, advise: h.advise}
}

// pointer converts an address in memory of the parent, or in noDirectory, to a pointer. That memory
// does not move. A number that is not an address must not become a pointer, not even one that nothing
// reads: Go ends the process if it meets 1 to 4,095 in a pointer of a stack that it moves.
func pointer(addr uintptr) unsafe.Pointer {
	if seam.On && addr-1 < leastAddress-1 {
		panic(fmt.Sprintf("hashmap: %d is not an address", addr))
	}
	return *(*unsafe.Pointer)(unsafe.Pointer(&addr))
}

const leastAddress = 4096 // minLegalPointer of Go's runtime
