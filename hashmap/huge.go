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
// Each sixteen blocks, the next blocks have one page more: a block is one or two mappings of the
// process, and Linux allows 65,530.

package hashmap

import (
	"cmp"
	"runtime"
	"slices"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

const (
	hugePage = 2 << 20
	hugeFrom = 8 << 20 // bytes of tables
)

// hugeTables is memory for tables. The zero value has none.
type hugeTables struct {
	size   uintptr // the most of a table; 0 if there are no huge pages
	page   uintptr // hugePage, except in tests
	from   uintptr // hugeFrom, except in tests
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
	size = (size + tableAlign - 1) &^ (tableAlign - 1)
	if h.next == nil && h.left.size() <= h.page/2 {
		h.start(parent)
	}
	if h.left.size() < size {
		h.turn()
	}
	if h.left.size() < size || h.size == 0 {
		return nil
	}
	return pointer(h.left.cut(size).from)
}

// start starts a goroutine that populates the next page by a system call. A touch would fault if
// the map ended with its parent meanwhile.
func (h *hugeTables) start(parent freehold.Allocator) {
	if h.unused.size() == 0 && !h.grow(parent) {
		h.size = 0
		return
	}
	next, advise := &nextPage{extent: h.unused.cut(h.page), done: make(chan struct{})}, h.advise
	h.next = next
	go func() {
		defer close(next.done)
		next.err = advise(next.memory(), vm.Populate)
		runtime.KeepAlive(h) // h is part of the map: see Options.Collect
	}()
}

// grow adds a block. It reports false if the parent refuses, or the system has no huge pages.
func (h *hugeTables) grow(parent freehold.Allocator) bool {
	b, err := parent.Alloc(int(h.page)*(1+len(h.blocks)/16), int(h.page))
	if err != nil {
		return false
	}
	h.advise(b, vm.DontNeed) // a page with resident small pages would not become a huge one
	if h.advise(b, vm.HugePages) != nil {
		parent.Free(b)
		return false
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	h.unused = extent{at, at + uintptr(len(b))}
	i, _ := slices.BinarySearchFunc(h.blocks, at, extent.compare)
	h.blocks = slices.Insert(h.blocks, i, h.unused)
	h.bytes += len(b)
	return true
}

// turn makes the next page the current one, if it is populated.
func (h *hugeTables) turn() {
	if h.next == nil {
		return
	}
	select {
	case <-h.next.done:
	default:
		return
	}
	if h.next.err != nil {
		h.size = 0
	}
	h.left, h.next = h.next.extent, nil
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
	*h = hugeTables{}
}

// pointer converts an address in memory of the parent, or in noDirectory, to a pointer. That memory
// does not move.
func pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }
