// Magazines: stacks of free blocks that move as one.
//
//	+------+---------+---------+---------+-----+
//	| head | entry 0 | entry 1 | entry 2 | ... |     a class's batch of entries
//	+------+---------+---------+---------+-----+
//	       bottom                        end
//
// A magazine belongs to a processor, to a depot, or to the goroutine that moves it between them.
// Moving a batch of blocks to another processor moves one address, the magazine's. (Bonwick and
// Adams, "Magazines and Vmem", 2001.)
//
// Below entry 0 is the sentinel, an entry whose status is never free. In an empty magazine Alloc's
// fast path reads the sentinel and fails, so it needs no empty check.
//
// # The magazines of a processor
//
// Alloc and Free use the loaded magazine of a class. The spare bounds how often a processor goes to
// a depot: at most once per batch of calls, in any order. With one magazine only, a program that
// calls Alloc and Free in turn could go there at each call, once its magazine is empty or full.
//
//	class   top --> one past the topmost entry of the loaded magazine
//	        end --> one past its last place
//	        spare   another magazine, with its own top and end

package small

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// magazine is the head of a magazine. n is stale while the magazine is a processor's: then only the
// top in Magazines is kept up to date.
type magazine struct {
	next     uintptr // the magazine below on a pile
	n        uintptr // entries
	sentinel Entry   // below entry 0
}

const (
	entryBytes   = unsafe.Sizeof(Entry{})
	magazineHead = unsafe.Sizeof(magazine{})
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
func magazineAt(addr uintptr) *magazine { return (*magazine)(vm.Pointer(addr)) }

func (m *magazine) addr() uintptr   { return uintptr(unsafe.Pointer(m)) }
func (m *magazine) bottom() uintptr { return m.addr() + magazineHead }
func (m *magazine) top() uintptr    { return m.bottom() + m.n*entryBytes }

// entries returns the first n entries.
func (m *magazine) entries(n uintptr) []Entry {
	return unsafe.Slice(entryAt(m.bottom()), n)
}

func (m *magazine) push(e Entry) {
	*entryAt(m.top()) = e
	m.n++
}

func (m *magazine) pop() Entry {
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

// pop returns the topmost magazine, or nil.
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

// Magazines has the magazines of one processor. They belong to the goroutine that holds the
// processor's slot: see package pin. They are off-heap. Tops and ends are separate arrays, so the
// words that the fast paths use take few cache lines.
//
// Invariants:
//   - a class without a loaded magazine has no spare
//   - the top and the end of a missing magazine are sentinelTop
type Magazines struct {
	tops      [NumClasses]uintptr
	ends      [NumClasses]uintptr
	spareTops [NumClasses]uintptr
	spareEnds [NumClasses]uintptr
}

// For the assembly of package heap.
const (
	Tops           = unsafe.Offsetof(Magazines{}.tops)
	Ends           = unsafe.Offsetof(Magazines{}.ends)
	SpareTops      = unsafe.Offsetof(Magazines{}.spareTops)
	SpareEnds      = unsafe.Offsetof(Magazines{}.spareEnds)
	SentinelStatus = unsafe.Offsetof(sentinel.status)
)

// Clear takes all magazines out of c, which then has no block and no room. It frees no magazine.
func (c *Magazines) Clear() {
	for i := range c.tops {
		c.tops[i], c.ends[i] = sentinelTop(), sentinelTop()
		c.spareTops[i], c.spareEnds[i] = sentinelTop(), sentinelTop()
	}
}

// Peek returns the topmost entry of a class and the status of its block. The status is not a free
// one if there is no entry, or if the block was freed twice and is live.
func (c *Magazines) Peek(class uint8) (e *Entry, was uint16) {
	e = entryAt(*c.top(class) - entryBytes)
	return e, *StatusAt(e.Status)
}

// Pop removes e, which Peek returned, and marks its block live with size bytes.
func (c *Magazines) Pop(class uint8, e *Entry, size int) unsafe.Pointer {
	*StatusAt(e.Status) = uint16(size)
	*c.top(class) = uintptr(unsafe.Pointer(e))
	return vm.NonNil(e.Addr)
}

// Room returns the top of the loaded magazine of a class. It reports false if the magazine is full
// or missing.
func (c *Magazines) Room(class uint8) (top uintptr, ok bool) {
	top = *c.top(class)
	return top, top != *c.end(class)
}

// Push frees the block at addr. st is the address of its status, and Room returned top.
func (c *Magazines) Push(class uint8, top, addr, st uintptr) {
	*StatusAt(st) = FreeDirty
	*entryAt(top) = Entry{addr, st}
	*c.top(class) = top + entryBytes
}

// top and end return tops[class] and ends[class] without a bounds check: see ClassOf.
func (c *Magazines) top(class uint8) *uintptr {
	return (*uintptr)(unsafe.Add(unsafe.Pointer(&c.tops), uintptr(class)*unsafe.Sizeof(c.tops[0])))
}

func (c *Magazines) end(class uint8) *uintptr {
	return (*uintptr)(unsafe.Add(unsafe.Pointer(&c.ends), uintptr(class)*unsafe.Sizeof(c.ends[0])))
}

// Alloc allocates a block of size bytes from the loaded magazine or the spare, and returns its
// address and previous status. addr is 0 if both are empty. If was is not a free status, the block
// was freed twice and is already live. Alloc has then removed the entry, and the block stays with
// its owner.
func (c *Magazines) Alloc(class uint8, size int) (addr uintptr, was uint16) {
	if isEmpty(c.tops[class]) {
		if isEmpty(c.spareTops[class]) {
			return 0, 0
		}
		c.swap(class)
	}
	c.tops[class] -= entryBytes
	e := *entryAt(c.tops[class])
	return e.Addr, e.claim(size)
}

// Free frees the block of e to the loaded magazine or the spare. It reports false if both are full
// or missing.
func (c *Magazines) Free(class uint8, e Entry) bool {
	top, ok := c.Room(class)
	if !ok {
		if c.spareTops[class] == c.spareEnds[class] {
			return false
		}
		c.swap(class)
		top = c.tops[class]
	}
	c.Push(class, top, e.Addr, e.Status)
	return true
}

// swap makes the spare the loaded magazine and the loaded one the spare.
func (c *Magazines) swap(class uint8) {
	c.tops[class], c.spareTops[class] = c.spareTops[class], c.tops[class]
	c.ends[class], c.spareEnds[class] = c.spareEnds[class], c.ends[class]
}

// exchange loads m, makes the loaded magazine the spare, and returns the old spare or nil.
func (c *Magazines) exchange(class uint8, m *magazine) (out *magazine) {
	out = c.spare(class)
	c.spareTops[class], c.spareEnds[class] = c.tops[class], c.ends[class]
	c.tops[class] = m.top()
	c.ends[class] = m.addr() + classes[class].magazineBytes()
	return out
}

// loaded returns the loaded magazine of a class, and spare the other one, or nil if there is none.
// They update the magazine's n.
func (c *Magazines) loaded(class uint8) *magazine {
	return magazineOf(class, c.tops[class], c.ends[class])
}
func (c *Magazines) spare(class uint8) *magazine {
	return magazineOf(class, c.spareTops[class], c.spareEnds[class])
}

func magazineOf(class uint8, top, end uintptr) *magazine {
	if end == sentinelTop() {
		return nil
	}
	m := magazineAt(end - classes[class].magazineBytes())
	m.n = (top - m.bottom()) / entryBytes
	return m
}

// Count adds the blocks in c to n, by class. The holder of the slot may use c meanwhile.
func (c *Magazines) Count(n *[NumClasses]int) {
	add := func(i int, top, end *uintptr) {
		if end := atomic.LoadUintptr(end); end != sentinelTop() {
			batch := classes[i].batch
			n[i] += int(min(batch, (atomic.LoadUintptr(top)-(end-batch*entryBytes))/entryBytes))
		}
	}
	for i := range n {
		add(i, &c.tops[i], &c.ends[i])
		add(i, &c.spareTops[i], &c.spareEnds[i])
	}
}
