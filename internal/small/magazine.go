// Magazines: stacks of free blocks that move as one.
//
//	+------+---------+---------+---------+-----+
//	| head | entry 0 | entry 1 | entry 2 | ... |     a class's batch of entries
//	+------+---------+---------+---------+-----+
//	       bottom                        end
//
// A magazine belongs to a cache, to a depot, or to the goroutine that moves it between them. Moving
// a batch of blocks to another processor moves one address, the magazine's. (Bonwick and Adams,
// "Magazines and Vmem", 2001.)
//
// Below entry 0 is the sentinel, an entry whose status is never free. In an empty magazine Alloc's
// fast path reads the sentinel and fails, so it needs no empty check.

package small

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// Entry is a free block.
type Entry struct {
	Addr   uintptr
	Status uintptr // address of the block's status
}

// claim makes the block live with the given size if it is free. It returns the previous status.
func (e *Entry) claim(size int) (was uint16) {
	st := StatusAt(e.Status)
	if was = *st; was >= FreeZero {
		*st = uint16(size)
	}
	return was
}

// Magazine is the head of a magazine. n is stale while the magazine is in a cache: there, only the
// cache's top is kept up to date.
type Magazine struct {
	next     uintptr // the magazine below on a pile
	n        uintptr // entries
	sentinel Entry   // below entry 0
}

const (
	entryBytes   = unsafe.Sizeof(Entry{})
	magazineHead = unsafe.Sizeof(Magazine{})
)

// sentinel has the entry that is copied below entry 0 of every magazine, and the status of that
// entry. It is also the magazine of a class without one: empty and full at once.
//
//go:linkname sentinel freehold.sentinel
var sentinel struct {
	entry  Entry
	status uint16
}

func init() {
	sentinel.entry.Status = uintptr(unsafe.Pointer(&sentinel.status))
}

// sentinelTop returns the top, and the end, of a class without a magazine.
func sentinelTop() uintptr { return uintptr(unsafe.Pointer(&sentinel.entry)) + entryBytes }

// isEmpty reports whether the magazine with the given top is empty or missing.
func isEmpty(top uintptr) bool { return entryAt(top-entryBytes).Status == sentinel.entry.Status }

func entryAt(addr uintptr) *Entry       { return (*Entry)(vm.NonNil(addr)) }
func magazineAt(addr uintptr) *Magazine { return (*Magazine)(vm.Pointer(addr)) }

func (m *Magazine) addr() uintptr   { return uintptr(unsafe.Pointer(m)) }
func (m *Magazine) bottom() uintptr { return m.addr() + magazineHead }
func (m *Magazine) top() uintptr    { return m.bottom() + m.n*entryBytes }

// entries returns the first n entries.
func (m *Magazine) entries(n uintptr) []Entry {
	return unsafe.Slice(entryAt(m.bottom()), n)
}

func (m *Magazine) push(e Entry) {
	*entryAt(m.top()) = e
	m.n++
}

func (m *Magazine) pop() Entry {
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

func (p *pile) push(m *Magazine) {
	m.next = p.head
	p.head = m.addr()
	p.n++
	p.blocks += int32(m.n)
}

// pop returns the topmost magazine, or nil.
func (p *pile) pop() *Magazine {
	if p.n == 0 {
		return nil
	}
	m := magazineAt(p.head)
	p.head = m.next
	p.n--
	p.blocks -= int32(m.n)
	return m
}
