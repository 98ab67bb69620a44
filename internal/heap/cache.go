// Caches: each processor's free blocks.
//
// A cache keeps runs of large blocks: see runs.go. Of small ones it has two magazines of each
// class: the loaded one, which Alloc and Free use, and a spare. The holder of a slot (package pin) has its cache to itself.
//
//	class   top --> one past the topmost entry of the loaded magazine
//	        end --> one past its last place
//	        spare   a magazine, full, empty or between
//
// Because of the spare a cache goes to its stock at most once per batch of
// calls, whatever their order: with one magazine, Alloc and Free in turn at its
// end would go there each time.
//
// # Draining
//
// pin.Table.Drain takes the caches away from their users; its table.go proves that
// none is at work in a cache it has taken. After it every free block is in a
// taken cache, in a stock or in a span. None is on its way between two of
// these: a goroutine that moves a magazine holds a stock's lock, and the slot
// while it touches the cache. Drain waits for the slot, and central.shrink for the
// lock.

package heap

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
	"github.com/freehold-go/freehold/internal/watch"
)

// cache is off-heap. Tops and ends are separate arrays, so that the words of the fast
// paths share few cache lines.
//
// Invariants:
//   - a class without a loaded magazine has no spare
//   - the top and the end of a magazine that is missing are sentinelTop
type cache struct {
	tops      [numClasses]uintptr
	ends      [numClasses]uintptr
	spareTops [numClasses]uintptr
	spareEnds [numClasses]uintptr
	left      int64 // bytes until the countdown ends: see watched.go
	runs      runs
}

const cacheBytes = unsafe.Sizeof(cache{})

// noCache is the entry of a slot without a cache. It is empty and full at once, so
// the fast paths need no test for it, and it is never written.
var noCache cache

func init() { noCache.clear() }

func (c *cache) clear() {
	for i := range c.tops {
		c.tops[i], c.ends[i] = sentinelTop(), sentinelTop()
		c.spareTops[i], c.spareEnds[i] = sentinelTop(), sentinelTop()
	}
	c.left = watch.Gap()
	c.runs = runs{}
}

func cacheAt(addr uintptr) *cache { return (*cache)(vm.Pointer(addr)) }
func (c *cache) addr() uintptr    { return uintptr(unsafe.Pointer(c)) }

// loaded returns a class's loaded magazine, and spare its spare one, with the number of entries
// set. They return nil if there is none.
func (c *cache) loaded(class uint8) *magazine { return magazineOf(class, c.tops[class], c.ends[class]) }
func (c *cache) spare(class uint8) *magazine {
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

// swap makes the spare the loaded magazine and the loaded one the spare.
func (c *cache) swap(class uint8) {
	c.tops[class], c.spareTops[class] = c.spareTops[class], c.tops[class]
	c.ends[class], c.spareEnds[class] = c.spareEnds[class], c.ends[class]
}

// takeSlow is take after that has failed: it tries the spare too. If was is not a
// free status then the block at addr was live already; its entry has been
// removed, and the block stays its owner's.
func (c *cache) takeSlow(class uint8, size int) (addr uintptr, was uint16) {
	if isEmpty(c.tops[class]) {
		if isEmpty(c.spareTops[class]) {
			return 0, 0
		}
		c.swap(class)
	}
	c.tops[class] -= entryBytes
	e := *entryAt(c.tops[class])
	return e.addr, e.claim(size)
}

// pushSlow is put that tries the spare too. It reports false if both are full or missing.
func (c *cache) pushSlow(class uint8, e entry) bool {
	top, ok := c.room(class)
	if !ok {
		if c.spareTops[class] == c.spareEnds[class] {
			return false
		}
		c.swap(class)
		top = c.tops[class]
	}
	c.put(class, top, e.addr, e.status)
	return true
}

// exchange loads m and makes the loaded magazine the spare. It returns the old
// spare, which may be nil. noCache returns m.
func (c *cache) exchange(class uint8, m *magazine) (out *magazine) {
	if c == &noCache {
		return m
	}
	out = c.spare(class)
	c.spareTops[class], c.spareEnds[class] = c.tops[class], c.ends[class]
	c.tops[class] = m.top()
	c.ends[class] = m.addr() + classes[class].magazineBytes()
	return out
}

// enter holds a slot until h.caches.Leave: the processor's, or the one that a test has chosen.
func (h *Heap) enter() (slot int) {
	if choose := chooseSlot.Load(); choose != nil {
		return (*choose)(h)
	}
	return h.caches.Enter()
}

// chooseSlot, if set, is called instead of Enter by slow paths. For tests.
var chooseSlot atomic.Pointer[func(h *Heap) (slot int)]

// allocSlow is Alloc after the fast path has failed.
func (h *Heap) allocSlow(size, align int, zero bool) ([]byte, error) {
	due := false
	b, err := h.allocUnwatched(size, align, zero, &due)
	if due {
		return h.watch.Alloc(b, align, zero)
	}
	return b, err
}

// allocUnwatched is allocSlow for a block that nobody watches. It sets due, unless that is
// nil, if somebody may want to. Before the heap is out of memory, it gives back what is kept
// for the watch.
func (h *Heap) allocUnwatched(size, align int, zero bool, due *bool) ([]byte, error) {
	b, err := h.tryAlloc(size, align, zero, due)
	if err != nil && h.watch.Release() {
		b, err = h.tryAlloc(size, align, zero, due)
	}
	if err != nil {
		return nil, h.refuse(allocCall(zero), err)
	}
	return b, nil
}

// tryAlloc is allocUnwatched with what the heap has.
func (h *Heap) tryAlloc(size, align int, zero bool, due *bool) (b []byte, err error) {
	class, counted := classFor(size, align), false
	if class == 0 || h.pages.WholePages {
		return h.tryLarge(size, align, zero, due)
	}
	defer func() {
		if err == nil && due != nil && !counted {
			*due = watch.Due(size)
		}
	}()
	slot := h.enter()
	c := h.caches.Entry(slot)
	if c == nil {
		h.caches.Leave(slot)
		panicNotMade(allocCall(zero))
	}
	addr, was := c.takeSlow(class, size)
	if counted = addr != 0; counted && due != nil {
		*due = c.due(size)
	}
	h.caches.Leave(slot)
	if addr == 0 {
		if c == &noCache {
			h.addCache(slot)
		}
		err := h.withReclaim(classes[class].pages, true, func() (err error) {
			addr, was, err = h.allocFromStock(class, slot, size)
			return err
		})
		if err != nil && err != pages.ErrClosed && h.mayTakePage(class, size) {
			return h.newLarge(size, align, zero)
		}
		if err != nil {
			return nil, err
		}
	}
	if was < freeZero {
		freedTwice(allocCall(zero), addr)
	}
	return block(addr, size, zero && was != freeZero), nil
}

// mayTakePage reports whether a small block that got no span may have pages of its
// own: if the block is half a page or more, if the system has no memory, or if
// the limit is so low that few spans fit. Otherwise such pages would fill the heap.
func (h *Heap) mayTakePage(class uint8, size int) bool {
	const spansOfALowLimit = 64
	limit := h.pages.Limit()
	return size > pages.PageBytes/2 || limit == 0 || classes[class].pages*pages.PageBytes > limit/spansOfALowLimit
}

// addrOf returns the address at which b begins.
func addrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// block returns the size bytes at addr, cleared or as they are.
func block(addr uintptr, size int, cleared bool) []byte {
	b := unsafe.Slice((*byte)(vm.Pointer(addr)), size)
	if cleared {
		clear(b)
	}
	return b
}

// freeSlow is Free after the fast path has failed: the loaded magazine is full, b
// is large or watched, or b is not a live block.
func (h *Heap) freeSlow(b []byte) {
	addr := addrOf(b)
	s := spanAt(addr)
	if s.isWatched(h.pages.ID, addr) && h.watch.Free("Heap.Free", b) {
		return
	}
	if s == nil || s.Kind != pages.BlockRun {
		h.freeLarge(b)
		return
	}
	class := s.class
	slot := h.enter()
	c := h.caches.Entry(slot)
	freed := false
	if e := liveEntry(h, b); e.addr != 0 {
		freed = c.pushSlow(class, e)
	}
	h.caches.Leave(slot)
	if freed {
		return
	}
	if c == &noCache {
		h.addCache(slot)
	}
	if c == nil || !h.freeToStock(class, slot, b) {
		h.misused("Heap.Free", b)
	}
	if h.limbo.full.Load() && h.pages.Scavenging.TryLock() {
		h.drain()
		h.pages.Scavenging.Unlock()
	}
}

// liveEntry returns b's entry if b is exactly a live small block of h, else the
// zero entry. The caller holds a slot, which keeps the statuses from being freed.
func liveEntry(h *Heap, b []byte) entry {
	addr := addrOf(b)
	s := spanAt(addr)
	if s == nil || !s.isBlock(h.pages.ID, addr, uintptr(len(b))) {
		return entry{}
	}
	return entry{addr, s.statusOf(s.index(addr))}
}

// addCache gives the slot with the given number a cache. Without memory,
// beyond the table and while the caches are drained there is none, and the heap
// works slowly.
func (h *Heap) addCache(slot int) {
	h.caches.Install(h.caches.Slot(slot), func() *cache {
		addr, err := h.pages.AllocObject(cacheBytes)
		if err != nil {
			return nil
		}
		c := cacheAt(addr)
		c.clear()
		c.runs.most, c.runs.longest = h.mostRuns()
		return c
	})
}

// drain returns what caches and stocks hold to the spans, and frees the spans
// without a live block and the statuses in limbo. Scavenging is held.
func (h *Heap) drain() { h.drainBy(h.caches.Drain) }

// drainPatiently is drain for a heap at rest. The heaps whose ticks are due at the
// same time share a stop of the world.
func (h *Heap) drainPatiently() { h.drainBy(h.caches.DrainPatiently) }

func (h *Heap) drainBy(drain func(match func(*cache) bool, f func([]*cache))) {
	h.counting.Lock()
	defer h.counting.Unlock()
	drain(nil, func(taken []*cache) {
		for _, c := range taken {
			h.empty(c)
		}
		for i := range h.central {
			h.central[i].shrink(h, true)
		}
		for _, c := range taken {
			h.pages.FreeObject(c.addr(), cacheBytes)
		}
		h.pages.FreeEmptySlabs()
	})
	h.drainedAt.Store(time.Now().UnixNano())
}

// empty returns the blocks of a cache that nobody can reach to their spans.
func (h *Heap) empty(c *cache) {
	slot := h.enter()
	h.caches.Leave(slot)
	for i := range c.tops {
		class := uint8(i)
		m := c.loaded(class)
		if m == nil {
			continue
		}
		s := h.stock(class, groupOf(slot))
		s.mu.Lock()
		s.flush(h, m)
		if spare := c.spare(class); spare != nil {
			s.flush(h, spare)
		}
		s.mu.Unlock()
	}
	for _, at := range c.runs.stacks {
		h.pages.FreeRuns(at)
	}
	c.clear()
}

// hasCaches reports whether a cache exists.
func (h *Heap) hasCaches() bool { return h.caches.Any(nil) }

// countCached adds up the free blocks in caches, by class, and the large ones. The caches may
// be in use. h.counting is held, so that none is freed.
func (h *Heap) countCached(n *[numClasses]int) (large pages.LargeCount) {
	h.caches.Each(func(c *cache) {
		c.count(n)
		runs := c.runs.count()
		large.Blocks += runs.Blocks
		large.Bytes += runs.Bytes
	})
	return large
}

// count adds the blocks in c to n, by class.
func (c *cache) count(n *[numClasses]int) {
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
