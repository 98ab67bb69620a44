// Caches: two magazines of each class for one processor.
//
// Alloc and Free use the loaded magazine. The spare bounds how often a cache goes to a depot: at
// most once per batch of calls, in any order. With one magazine only, a program that calls Alloc
// and Free in turn could go there at each call, once its magazine is empty or full.
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

// A Cache belongs to the goroutine that holds its slot: see package pin. It is off-heap. Tops and
// ends are separate arrays, so the words that the fast paths use take few cache lines.
//
// Invariants:
//   - a class without a loaded magazine has no spare
//   - the top and the end of a missing magazine are sentinelTop
type Cache struct {
	tops      [NumClasses]uintptr
	ends      [NumClasses]uintptr
	spareTops [NumClasses]uintptr
	spareEnds [NumClasses]uintptr
}

// For the assembly of package heap.
const (
	CacheTops      = unsafe.Offsetof(Cache{}.tops)
	CacheEnds      = unsafe.Offsetof(Cache{}.ends)
	CacheSpareTops = unsafe.Offsetof(Cache{}.spareTops)
	CacheSpareEnds = unsafe.Offsetof(Cache{}.spareEnds)
	SentinelStatus = unsafe.Offsetof(sentinel.status)
)

// Clear makes c a cache without magazines, which has no block and no room. It frees no magazine.
func (c *Cache) Clear() {
	for i := range c.tops {
		c.tops[i], c.ends[i] = sentinelTop(), sentinelTop()
		c.spareTops[i], c.spareEnds[i] = sentinelTop(), sentinelTop()
	}
}

// Peek returns the topmost entry of a class and the status of its block. The status is not a free
// one if there is no entry, or if the block was freed twice and is live.
func (c *Cache) Peek(class uint8) (e *Entry, was uint16) {
	e = entryAt(*c.top(class) - entryBytes)
	return e, *StatusAt(e.Status)
}

// Pop removes e, which Peek returned, and marks its block live with size bytes.
func (c *Cache) Pop(class uint8, e *Entry, size int) unsafe.Pointer {
	*StatusAt(e.Status) = uint16(size)
	*c.top(class) = uintptr(unsafe.Pointer(e))
	return vm.NonNil(e.Addr)
}

// Room returns the top of the loaded magazine of a class. It reports false if the magazine is full
// or missing.
func (c *Cache) Room(class uint8) (top uintptr, ok bool) {
	top = *c.top(class)
	return top, top != *c.end(class)
}

// Push frees the block at addr. st is the address of its status, and Room returned top.
func (c *Cache) Push(class uint8, top, addr, st uintptr) {
	*StatusAt(st) = FreeDirty
	*entryAt(top) = Entry{addr, st}
	*c.top(class) = top + entryBytes
}

// top and end return tops[class] and ends[class] without a bounds check: see ClassOf.
func (c *Cache) top(class uint8) *uintptr {
	return (*uintptr)(unsafe.Add(unsafe.Pointer(&c.tops), uintptr(class)*unsafe.Sizeof(c.tops[0])))
}

func (c *Cache) end(class uint8) *uintptr {
	return (*uintptr)(unsafe.Add(unsafe.Pointer(&c.ends), uintptr(class)*unsafe.Sizeof(c.ends[0])))
}

// Alloc allocates a block of size bytes from the loaded magazine or the spare, and returns its
// address and previous status. addr is 0 if both are empty. If was is not a free status, the block
// was freed twice and is already live. Alloc has then removed the entry, and the block stays with
// its owner.
func (c *Cache) Alloc(class uint8, size int) (addr uintptr, was uint16) {
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
func (c *Cache) Free(class uint8, e Entry) bool {
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
func (c *Cache) swap(class uint8) {
	c.tops[class], c.spareTops[class] = c.spareTops[class], c.tops[class]
	c.ends[class], c.spareEnds[class] = c.spareEnds[class], c.ends[class]
}

// exchange loads m, makes the loaded magazine the spare, and returns the old spare or nil.
func (c *Cache) exchange(class uint8, m *Magazine) (out *Magazine) {
	out = c.spare(class)
	c.spareTops[class], c.spareEnds[class] = c.tops[class], c.ends[class]
	c.tops[class] = m.top()
	c.ends[class] = m.addr() + classes[class].magazineBytes()
	return out
}

// loaded returns the loaded magazine of a class, and spare the other one, or nil if there is none.
// They update the magazine's n.
func (c *Cache) loaded(class uint8) *Magazine { return magazineOf(class, c.tops[class], c.ends[class]) }
func (c *Cache) spare(class uint8) *Magazine {
	return magazineOf(class, c.spareTops[class], c.spareEnds[class])
}

func magazineOf(class uint8, top, end uintptr) *Magazine {
	if end == sentinelTop() {
		return nil
	}
	m := magazineAt(end - classes[class].magazineBytes())
	m.n = (top - m.bottom()) / entryBytes
	return m
}

// Count adds the blocks in c to n, by class. The holder of the slot may use c meanwhile.
func (c *Cache) Count(n *[NumClasses]int) {
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
