// Magazines: stacks of free blocks that move as one.
//
//	+------+---------+---------+---------+-----+
//	| head | entry 0 | entry 1 | entry 2 | ... |     a class's batch of entries
//	+------+---------+---------+---------+-----+
//	       bottom                        end
//
// A magazine belongs to a cache, to a stock, or to the function that moves it
// between them under the stock's lock. A whole batch passes from one processor
// to another by its address alone. (Bonwick and Adams, "Magazines and Vmem", 2001.)
//
// Below entry 0 is the sentinel, whose status is never free. The fast path of
// Alloc reads it in an empty magazine and fails.

package heap

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// entry is a free block in a magazine.
type entry struct {
	addr   uintptr
	status uintptr // address of the block's status
}

// claim makes the block a live one of size bytes if it is free. It returns the
// status that it had.
func (e *entry) claim(size int) (was uint16) {
	st := statusAt(e.status)
	if was = *st; was >= freeZero {
		*st = uint16(size)
	}
	return was
}

// magazine is the head of one. n is stale while the magazine is in a cache, whose top tells how
// full it is.
type magazine struct {
	next     uintptr // the magazine below on a pile
	n        uintptr // entries
	sentinel entry   // below entry 0
}

const (
	entryBytes   = unsafe.Sizeof(entry{})
	magazineHead = unsafe.Sizeof(magazine{})
)

// sentinel is the entry below entry 0 of every magazine, and of a class without
// one. Its status is never free, so the fast path needs no test for emptiness.
var sentinel struct {
	entry  entry
	status uint16
}

func init() {
	sentinel.entry.status = uintptr(unsafe.Pointer(&sentinel.status))
}

// sentinelTop is the top and the end of a class without a magazine.
func sentinelTop() uintptr { return uintptr(unsafe.Pointer(&sentinel.entry)) + entryBytes }

// isEmpty reports whether the magazine with the given top is empty, or missing.
func isEmpty(top uintptr) bool { return entryAt(top-entryBytes).status == sentinel.entry.status }

func entryAt(addr uintptr) *entry       { return (*entry)(vm.NonNil(addr)) }
func magazineAt(addr uintptr) *magazine { return (*magazine)(vm.Pointer(addr)) }

func (m *magazine) addr() uintptr   { return uintptr(unsafe.Pointer(m)) }
func (m *magazine) bottom() uintptr { return m.addr() + magazineHead }
func (m *magazine) top() uintptr    { return m.bottom() + m.n*entryBytes }

// entries returns the first n entries.
func (m *magazine) entries(n uintptr) []entry {
	return unsafe.Slice(entryAt(m.bottom()), n)
}

func (m *magazine) push(e entry) {
	*entryAt(m.top()) = e
	m.n++
}

func (m *magazine) pop() entry {
	m.n--
	return *entryAt(m.top())
}

// magazineBytes returns the size of a class's magazines.
func (c *class) magazineBytes() uintptr { return magazineHead + c.batch*entryBytes }

// pile is a stack of magazines.
type pile struct {
	head   uintptr
	n      int32 // magazines
	blocks int32 // in them
}

func (p *pile) push(m *magazine) {
	m.next = p.head
	p.head = m.addr()
	p.n++
	p.blocks += int32(m.n)
}

// pop returns the topmost magazine, nil if there is none.
func (p *pile) pop() *magazine {
	if p.n == 0 {
		return nil
	}
	m := magazineAt(p.head)
	p.head = m.next
	p.n--
	p.blocks -= int32(m.n)
	return m
}
