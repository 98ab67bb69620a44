// Caches: each processor's free blocks, and each LocalCache's.
//
// A cache has two magazines of each class: one that Alloc and Free use, which is
// loaded, and a spare behind it. Whoever holds a slot, by package pin, has the
// cache in it to itself.
//
//	class   top --> first free entry of the loaded magazine
//	        end --> its end
//	        spare   a magazine that is full, empty or anything between
//
// With a spare, the caches and the centrals meet once per batch at most,
// whatever the order of Alloc and Free.
//
// # Draining
//
// Drain of pin.Table takes the caches away from their users. From then on no free
// block is anywhere but in the caches taken, the centrals and the spans: no
// magazine is ever carried from one to another by a goroutine that holds neither
// the slot nor the central's lock.

package heap

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// cache is one processor's stock. It is off-heap. Tops, ends and spares are apart,
// so that those which Alloc and Free use share few cache lines.
//
// Invariant: a class without a loaded magazine has sentinelTop as top and end, and no
// spare.
type cache struct {
	tops   [numClasses]uintptr
	ends   [numClasses]uintptr
	spares [numClasses]uintptr
}

const cacheBytes = unsafe.Sizeof(cache{})

// noCache is what a slot without a cache has: nothing is in it, and nothing goes
// in. Nobody writes to it.
var noCache cache

func init() { noCache.clear() }

func (c *cache) clear() {
	for i := range c.tops {
		c.tops[i], c.ends[i], c.spares[i] = sentinelTop(), sentinelTop(), 0
	}
}

func cacheAt(addr uintptr) *cache { return (*cache)(vm.Pointer(addr)) }
func (c *cache) addr() uintptr    { return uintptr(unsafe.Pointer(c)) }

// loaded returns a class's loaded magazine, nil if there is none.
func (c *cache) loaded(class uint8) *magazine {
	if c.ends[class] == sentinelTop() {
		return nil
	}
	return magazineAt(c.ends[class] - classes[class].magazineBytes())
}

// fill returns how many entries m, which is loaded, has.
func (c *cache) fill(class uint8, m *magazine) uintptr {
	return (c.tops[class] - m.bottom()) / entryBytes
}

// take is what Alloc does: it returns the topmost block and the status that it
// had, 0 if there is none or it is one that was freed twice.
func (c *cache) take(class uint8, size int) (addr uintptr, was uint16) {
	top := c.tops[class]
	e := entryAt(top - entryBytes)
	st := statusAt(e.status)
	if was = *st; was < freeZero {
		return 0, 0
	}
	*st = uint16(size)
	c.tops[class] = top - entryBytes
	return e.addr, was
}

// push is what Free does.
func (c *cache) push(class uint8, e entry) bool {
	top := c.tops[class]
	if top == c.ends[class] {
		return false
	}
	*entryAt(top) = e
	c.tops[class] = top + entryBytes
	return true
}

// swap makes the spare the loaded magazine and the loaded one the spare.
func (c *cache) swap(class uint8) {
	c.exchange(class, magazineAt(c.spares[class]))
}

// takeSlow is take where the loaded magazine had nothing to give. If was is no
// free status then the block at addr was live already: it has been removed from
// the cache and stays its owner's.
func (c *cache) takeSlow(class uint8, size int) (addr uintptr, was uint16) {
	m := c.loaded(class)
	if m == nil {
		return 0, 0
	}
	if c.fill(class, m) == 0 {
		spare := magazineAt(c.spares[class])
		if spare == nil || spare.n == 0 {
			return 0, 0
		}
		c.swap(class)
	}
	c.tops[class] -= entryBytes
	e := *entryAt(c.tops[class])
	return e.addr, e.claim(size)
}

// pushSlow is push where the loaded magazine was full.
func (c *cache) pushSlow(class uint8, e entry) bool {
	if c.push(class, e) {
		return true
	}
	spare := magazineAt(c.spares[class])
	if spare == nil || spare.n == classes[class].batch {
		return false
	}
	c.swap(class)
	return c.push(class, e)
}

// exchange loads m and makes the magazine that was loaded the spare. It returns
// the spare that was, or nil; without a cache that is m.
func (c *cache) exchange(class uint8, m *magazine) (out *magazine) {
	if c == &noCache {
		return m
	}
	out = magazineAt(c.spares[class])
	c.spares[class] = 0
	if old := c.loaded(class); old != nil {
		old.n = c.fill(class, old)
		c.spares[class] = old.addr()
	}
	c.tops[class] = m.top()
	c.ends[class] = m.addr() + classes[class].magazineBytes()
	return out
}

// cacheOf returns o's cache, or that in a slot if o is nil. The slot is held.
func (h *Heap) cacheOf(o *LocalCache, slot int) *cache {
	if o != nil {
		return o.slot.Entry()
	}
	return h.caches.Entry(slot)
}

// allocSlow is Alloc of a small block where the cache, o's or the processor's, has
// none to give.
func (h *Heap) allocSlow(o *LocalCache, class uint8, size, align int, zero bool) ([]byte, error) {
	if h.pages.wholePages {
		return h.allocLarge(o, size, align, zero)
	}
	slot := h.caches.Enter()
	c := h.cacheOf(o, slot)
	if c == nil {
		h.caches.Leave(slot)
		panicNotMade(allocCall(o, zero))
	}
	addr, was := c.takeSlow(class, size)
	h.caches.Leave(slot)
	if addr == 0 {
		if c == &noCache {
			h.addCache(o, slot)
		}
		err := h.withReclaim(classes[class].pages, func() (err error) {
			addr, was, err = h.central[class].alloc(h, o, size)
			return err
		})
		if err != nil && err != errClosed && h.mayTakePage(class, size) {
			var b []byte
			if b, err = h.newLarge(size, align, zero); err == nil {
				return b, nil
			}
		}
		if err != nil {
			return nil, h.refuse(allocCall(o, zero), err)
		}
	}
	if was < freeZero {
		freedTwice(allocCall(o, zero), addr)
	}
	if debugging {
		h.mustBeUntouched(addr, class, was)
	}
	return block(addr, size, zero && was != freeZero), nil
}

// mayTakePage reports whether a page of its own is the better end for a small
// block that got no span: where the system is at its end, or the limit so low
// that spans hardly fit. Elsewhere pages for small blocks would fill the heap.
func (h *Heap) mayTakePage(class uint8, size int) bool {
	const spansOfALowLimit = 64
	return size > pageBytes/2 || h.pages.maxBytes == 0 || classes[class].pages*pageBytes > h.pages.maxBytes/spansOfALowLimit
}

// block returns the size bytes at addr, cleared or as they are.
func block(addr uintptr, size int, cleared bool) []byte {
	b := unsafe.Slice((*byte)(vm.Pointer(addr)), size)
	if cleared {
		clear(b)
	}
	return b
}

// freeSlow is Free where the cache has no room, or b is no small block.
func (h *Heap) freeSlow(o *LocalCache, b []byte) {
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	s := spanAt(addr)
	if s == nil || s.kind != blockRun {
		h.freeLarge(o, b)
		return
	}
	class := s.class
	slot := h.caches.Enter()
	c := h.cacheOf(o, slot)
	freed := false
	if e := liveEntry(h, b); e.addr != 0 && c.pushSlow(class, e) {
		*statusAt(e.status) = freeDirty
		freed = true
		if debugging {
			poison(addr, s.size)
		}
	}
	h.caches.Leave(slot)
	if freed {
		return
	}
	if c == &noCache {
		h.addCache(o, slot)
	}
	if !h.central[class].free(h, o, b) {
		h.misused(freeCall(o), b)
	}
	if h.limbo.full.Load() && h.pages.scavenging.TryLock() {
		h.drain()
		h.pages.scavenging.Unlock()
	}
}

// liveEntry returns b as an entry, if it is exactly a live small block of h.
// While the caller holds a slot or the lock of the block's central, the span
// and its statuses stay what they are.
func liveEntry(h *Heap, b []byte) entry {
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	s := spanAt(addr)
	if s == nil || !s.isBlock(h.pages.id, addr, uintptr(len(b))) {
		return entry{}
	}
	return entry{addr, s.statusOf(s.index(addr))}
}

// addCache gives o, or the slot with the given number, a cache. Without memory,
// beyond the table and while the caches are drained there is none, and the heap
// works slowly.
func (h *Heap) addCache(o *LocalCache, slot int) {
	s := h.caches.Slot(slot)
	if o != nil {
		s = &o.slot
	}
	h.caches.Install(s, func() *cache {
		addr, err := h.pages.allocObject(cacheBytes)
		if err != nil {
			return nil
		}
		c := cacheAt(addr)
		c.clear()
		return c
	})
}

// drain returns what caches and stocks hold to the spans, and frees the spans
// without a live block and the statuses in limbo. scavenging is held.
func (h *Heap) drain() {
	h.counting.Lock()
	defer h.counting.Unlock()
	h.caches.Drain(nil, func(taken []*cache) {
		for _, c := range taken {
			h.empty(c)
		}
		for i := range h.central {
			h.central[i].drain(h)
		}
		for _, c := range taken {
			h.pages.freeObject(c.addr(), cacheBytes)
		}
		h.pages.freeEmptySlabs()
	})
	h.drainedAt.Store(time.Now().UnixNano())
}

// empty returns what is in a cache that nobody can reach to the spans.
func (h *Heap) empty(c *cache) {
	for i := range c.tops {
		class := uint8(i)
		m := c.loaded(class)
		if m == nil {
			continue
		}
		m.n = c.fill(class, m)
		h.central[class].flushAll(h, m, magazineAt(c.spares[class]))
	}
	c.clear()
}

// hasCaches reports whether a cache exists.
func (h *Heap) hasCaches() bool { return h.caches.Any(nil) }

// countCached adds up, by class, the free blocks that the caches hold. Their
// users may be at work. h.counting is held, which keeps the caches.
func (h *Heap) countCached(n *[numClasses]int) {
	h.caches.Each(func(c *cache) { c.count(n) })
}

// count adds the blocks in c to n, by class.
func (c *cache) count(n *[numClasses]int) {
	for i := range n {
		top, end := atomic.LoadUintptr(&c.tops[i]), atomic.LoadUintptr(&c.ends[i])
		spare := atomic.LoadUintptr(&c.spares[i])
		if end == sentinelTop() {
			continue
		}
		batch := classes[i].batch
		n[i] += int(min(batch, (top-(end-batch*entryBytes))/entryBytes))
		if spare != 0 {
			n[i] += int(min(batch, atomic.LoadUintptr(&magazineAt(spare).n)))
		}
	}
}
