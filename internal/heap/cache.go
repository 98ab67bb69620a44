// Caches: each processor's stock of free blocks.
//
// A cache has a slot for each class, and a slot two magazines: one that Alloc
// and Free use, which is loaded, and a spare behind it. Whoever holds the
// cache's place, by package pin, has it to itself; what may not be done
// meanwhile is said there.
//
//	slot   top --> first free entry of the loaded magazine
//	       end --> its end
//	       spare   a magazine that is full, empty or anything between
//
// With a spare, the caches and the centrals meet once per batch at most,
// whatever the order of Alloc and Free.

package heap

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/vm"
)

// cache is one processor's stock. It is off-heap. The slots are cut into
// columns, so that those which Alloc and Free use share few cache lines.
//
// Invariant: a slot without a loaded magazine has noTop as top and end, and no
// spare.
type cache struct {
	tops   [numClasses]uintptr
	ends   [numClasses]uintptr
	spares [numClasses]uintptr
}

const cacheBytes = unsafe.Sizeof(cache{})

// caches is the table of caches by place. A place has the empty cache until it
// needs one of its own, which it gets under the heap's mu. It stands in the
// heap itself and has a fixed length, which saves Alloc and Free two loads.
type caches [pin.Max]atomic.Uintptr

// noCache is the cache of a place that has none: nothing is in it, and nothing
// goes in. Nobody writes to it, for all such places have it.
var noCache cache

func init() { noCache.clear() }

func (c *cache) clear() {
	for i := range c.tops {
		c.tops[i], c.ends[i], c.spares[i] = noTop(), noTop(), 0
	}
}

func cacheAt(addr uintptr) *cache { return (*cache)(vm.Pointer(addr)) }
func (c *cache) addr() uintptr    { return uintptr(unsafe.Pointer(c)) }

func (h *Heap) initCaches() {
	for i := range h.caches {
		h.caches[i].Store(noCache.addr())
	}
}

// cacheOf returns the cache at a place that is held.
func (h *Heap) cacheOf(place int) *cache {
	if uint(place) < pin.Max {
		return cacheAt(h.caches[place].Load())
	}
	return &noCache
}

// loaded returns a slot's loaded magazine, nil if there is none.
func (c *cache) loaded(class uint8) *magazine {
	if c.ends[class] == noTop() {
		return nil
	}
	return magazineAt(c.ends[class] - classes[class].magazineBytes())
}

// fill returns how many entries m, which is loaded, has.
func (c *cache) fill(class uint8, m *magazine) uintptr {
	return (c.tops[class] - m.bottom()) / entryBytes
}

// load makes m the loaded magazine and returns the one that was.
func (c *cache) load(class uint8, m *magazine) *magazine {
	old := c.loaded(class)
	if old != nil {
		old.n = c.fill(class, old)
	}
	c.tops[class] = m.top()
	c.ends[class] = m.addr() + classes[class].magazineBytes()
	return old
}

// take is what Alloc does: it returns the topmost block and the state that it
// had, 0 if there is none or it is one that was freed twice.
func (c *cache) take(class uint8, size int) (addr uintptr, was uint16) {
	top := c.tops[class]
	e := entryAt(top - entryBytes)
	st := state(e.state)
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
	c.spares[class] = c.load(class, magazineAt(c.spares[class])).addr()
}

// popSpare returns a block from the spare, which changes places with the loaded
// magazine; and if it has none either, the spare itself, to be exchanged.
func (c *cache) popSpare(class uint8) (e entry, empty *magazine) {
	spare := magazineAt(c.spares[class])
	switch {
	case spare == nil:
	case spare.n > 0:
		c.swap(class)
		c.tops[class] -= entryBytes
		return *entryAt(c.tops[class]), nil
	default:
		c.spares[class] = 0
	}
	return entry{}, spare
}

// pushSpare puts a block where popSpare would find it, unless the spare is full
// too: then it returns that, to be exchanged.
func (c *cache) pushSpare(class uint8, e entry) (stored bool, full *magazine) {
	if c.push(class, e) {
		return true, nil
	}
	spare := magazineAt(c.spares[class])
	switch {
	case spare == nil:
	case spare.n < classes[class].batch:
		c.swap(class)
		return c.push(class, e), nil
	default:
		c.spares[class] = 0
	}
	return false, spare
}

// accept loads m and makes what was loaded the spare. It returns what there is
// no room for, or nil.
func (c *cache) accept(class uint8, m *magazine) *magazine {
	old := c.load(class, m)
	if old != nil && c.spares[class] == 0 {
		c.spares[class] = old.addr()
		return nil
	}
	return old
}

// dropLive removes the cache's next block if it is one that has been handed out
// already, and returns its address; from then on it is nobody's but its owner's.
func (c *cache) dropLive(class uint8) (addr uintptr) {
	if m := c.loaded(class); m != nil && c.fill(class, m) > 0 {
		if e := entryAt(c.tops[class] - entryBytes); *state(e.state) < freeZero {
			c.tops[class] -= entryBytes
			return e.addr
		}
	}
	return 0
}

// allocSlow is Alloc of a small block where the cache has none to give.
func (h *Heap) allocSlow(class uint8, size, align int, zero bool) ([]byte, error) {
	if h.wholePages {
		return h.allocLarge(size, align, zero)
	}
	place := h.places.Enter()
	twice := h.cacheOf(place).dropLive(class)
	h.places.Leave(place)
	if twice != 0 {
		freedTwice(twice)
	}
	e, err := h.refill(class)
	return h.use(e, err, size, align, zero)
}

// use makes a free block a live one, or, if an error kept it from coming, finds
// a large one: a page may be had where a span is not.
func (h *Heap) use(e entry, err error, size, align int, zero bool) ([]byte, error) {
	switch err {
	case nil:
	case errClosed:
		return nil, h.refused(err)
	default:
		return h.allocLarge(size, align, zero)
	}
	st := state(e.state)
	was := *st
	if was < freeZero {
		freedTwice(e.addr)
	}
	*st = uint16(size)
	return block(e.addr, size, zero && was != freeZero), nil
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
func (h *Heap) freeSlow(b []byte) {
	if e, class := h.smallBlock(b); e.addr != 0 {
		*state(e.state) = freeDirty
		h.store(class, e)
	} else {
		h.freeLarge(b)
	}
}

// smallBlock returns b as an entry, if it is exactly a live small block.
func (h *Heap) smallBlock(b []byte) (e entry, class uint8) {
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	s := spanAt(addr)
	if s == nil || s.kind != blockRun || !s.holds(h, addr, b) {
		return entry{}, 0
	}
	return entry{addr, s.stateOf(s.index(addr))}, s.class
}

// refill returns a free block of a class of which the cache has none, and puts
// more into the cache.
func (h *Heap) refill(class uint8) (entry, error) {
	place := h.places.Enter()
	e, empty := h.cacheOf(place).popSpare(class)
	h.places.Leave(place)
	if e.addr != 0 {
		return e, nil
	}
	m, err := h.takeMagazine(class, empty)
	if err != nil {
		return entry{}, err
	}
	e = m.pop()
	h.keep(class, m)
	return e, nil
}

// takeMagazine exchanges empty, or nil, for a magazine with blocks.
func (h *Heap) takeMagazine(class uint8, empty *magazine) (m *magazine, err error) {
	err = h.withReclaim(func() (err error) {
		m, err = h.central[class].take(h, empty)
		empty = nil
		return err
	})
	return m, err
}

// store puts a free block into the cache, whose loaded magazine is full.
func (h *Heap) store(class uint8, e entry) {
	place := h.places.Enter()
	stored, full := h.cacheOf(place).pushSpare(class, e)
	h.places.Leave(place)
	if stored {
		return
	}
	if m := h.central[class].give(h, full, e); m != nil {
		h.keep(class, m)
	}
}

// keep puts a magazine into the cache of the place that it finds itself in,
// which may be another than before, and what that has no room for into the
// central.
func (h *Heap) keep(class uint8, m *magazine) {
	m, kept := h.keepHere(class, m)
	if !kept && h.addCache() {
		m, _ = h.keepHere(class, m)
	}
	if m != nil {
		h.central[class].put(h, m)
	}
}

// keepHere is accept, if the place has a cache of its own.
func (h *Heap) keepHere(class uint8, m *magazine) (left *magazine, kept bool) {
	place := h.places.Enter()
	c := h.cacheOf(place)
	if kept = c != &noCache; kept {
		m = c.accept(class, m)
	}
	h.places.Leave(place)
	return m, kept
}

// addCache gives the place that it finds itself in a cache. It reports whether
// there is one: without memory, and beyond the places, the heap works slowly.
func (h *Heap) addCache() bool {
	place := h.places.Enter()
	h.places.Leave(place)
	if place >= pin.Max {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed.Load() {
		return false
	}
	if h.caches[place].Load() == noCache.addr() {
		addr, err := h.newObject(cacheBytes)
		if err != nil {
			return false
		}
		cacheAt(addr).clear()
		h.caches[place].Store(addr)
	}
	return true
}

// drainCaches empties the caches of all places. h.tending is held.
func (h *Heap) drainCaches() {
	var taken []*cache
	for i := range h.caches {
		if c := h.caches[i].Swap(noCache.addr()); c != noCache.addr() {
			taken = append(taken, cacheAt(c))
		}
	}
	if len(taken) == 0 {
		return
	}
	h.places.Wait()
	for _, c := range taken {
		h.empty(c)
		h.mu.Lock()
		h.freeObject(c.addr(), cacheBytes)
		h.mu.Unlock()
	}
}

// empty returns what is in a cache that nobody can reach.
func (h *Heap) empty(c *cache) {
	for i := range c.tops {
		class := uint8(i)
		m := c.loaded(class)
		if m == nil {
			continue
		}
		m.n = c.fill(class, m)
		h.central[class].put(h, m)
		if c.spares[class] != 0 {
			h.central[class].put(h, magazineAt(c.spares[class]))
		}
	}
	c.clear()
}

// hasCaches reports whether a cache exists.
func (h *Heap) hasCaches() bool {
	for i := range h.caches {
		if h.caches[i].Load() != noCache.addr() {
			return true
		}
	}
	return false
}

// countCached adds up, by class, the free blocks that the caches hold. Their
// processors may be using them.
func (h *Heap) countCached(n *[numClasses]int) {
	h.mu.Lock() // keeps a cache that is being drained from being freed
	defer h.mu.Unlock()
	h.places.Each(func(place int) {
		c := cacheAt(h.caches[place].Load())
		if c == &noCache {
			return
		}
		for i := range n {
			top, end := atomic.LoadUintptr(&c.tops[i]), atomic.LoadUintptr(&c.ends[i])
			spare := atomic.LoadUintptr(&c.spares[i])
			if end == noTop() {
				continue
			}
			batch := classes[i].batch
			n[i] += int(min(batch, (top-(end-batch*entryBytes))/entryBytes))
			if spare != 0 {
				n[i] += int(min(batch, atomic.LoadUintptr(&magazineAt(spare).n)))
			}
		}
	})
}
