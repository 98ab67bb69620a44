// Stock: the magazines of a class that no cache has.
//
//	cache <--+--> stock of the group <--+-- blocks --> spans
//	         +--> stocks of others   <--+
//
// A stock has a pile of magazines with free blocks of any span, and a pile of empty ones. Blocks
// that one processor frees and another allocates pass through it, and not through the spans.
//
// Processors form groups of 8 to 15, and each group has a stock of each class, with a lock of its
// own: a lock of all would bound what many processors hand over. Alloc takes a magazine
// from another group if its own has none, and Free puts one there if its own has no room. So blocks
// pass between groups too, and all stocks of a class together keep no more than one would.
// Groups that find theirs empty try the others in different orders, which spreads them.
//
// # The exchange
//
// A cache comes here when both its magazines are empty (Alloc) or full (Free).
// Alloc takes a full magazine from the stock, or fills one from the spans; Free
// makes an empty one. Either takes its own block out or puts it in, and then
// exchanges the magazine for the cache's spare under the slot. The goroutine may
// have moved to another processor since its fast path failed, whose cache is in
// any state: full and partly filled magazines come back as well as empty ones.
//
// One stock is locked throughout, and gets what comes back. Stats and a drain lock all
// stocks of a class, so they never miss a magazine between a cache, a stock and the spans.

package heap

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/lockrank"
)

// How many magazines a class keeps at least, with blocks and without: more where more
// processors exchange with it. See mostMagazines.
var (
	maxStock          = max(4, runtime.NumCPU()/2)
	maxEmptyMagazines = max(2, runtime.NumCPU()/4)
)

// numGroups returns how many groups a new heap has. groupOf returns the group of a slot, less a
// multiple of their number. They are variables for tests.
var (
	numGroups = func() int { return groupsOf(runtime.GOMAXPROCS(0)) }
	groupOf   = func(slot int) int { return slot }
)

// groupsOf returns a power of two.
func groupsOf(processors int) int {
	const least = 8 // processors in a group, if there are several
	return 1 << bits.Len(uint(processors/least/2))
}

// stock is what a group has of one class. mu guards it.
//
// Invariants:
//   - full.n <= mostMagazines
//   - empty.n <= mostMagazines - full.n, or its part of maxEmptyMagazines if that is more
//   - length == full.n
//   - Heap.burst is the sum of bursting over all stocks
type stock struct {
	mu            lockrank.Mutex[lockrank.Stock]
	full          pile         // magazines with blocks
	empty         pile         // magazines without
	length        atomic.Int32 // of full, for those without mu
	unused        int16        // magazines that have been in full since the last tick
	used          bool         // blocks moved since the last tick
	class         uint8
	allocs, frees uint64 // calls that moved blocks
}

// stocks are those of a group. Where words have 64 bits, each has a cache line.
type stocks [numClasses]stock

const _ = 64 - unsafe.Sizeof(stock{})

// stock returns a group's stock of the class.
func (h *Heap) stock(class uint8, group int) *stock {
	return &h.stocks[group&(len(h.stocks)-1)][class]
}

// lockFull locks the stock of the slot's group, or another one if that one has magazines with blocks and
// the group's has none.
func (h *Heap) lockFull(class uint8, slot int) *stock {
	group := groupOf(slot)
	for i := range h.stocks {
		s := h.stock(class, group^i)
		if s.look() == 0 {
			continue
		}
		if s.lock(); s.full.n > 0 {
			return s
		}
		s.mu.Unlock()
	}
	s := h.stock(class, group)
	s.lock()
	return s
}

// lockRoomy locks the stock of the slot's group, or another one if that one has room and the group's
// has none. It looks into one other only, and next time into the next if it was full: where memory is freed
// for good, all are.
func (h *Heap) lockRoomy(class uint8, slot int) *stock {
	s, most := h.stock(class, groupOf(slot)), int32(h.mostMagazines(class))
	s.lock()
	if s.full.n < most {
		return s
	}
	if other := h.stock(class, int(s.frees)); other.look() < most {
		s.mu.Unlock()
		s = other
		s.lock()
	}
	return s
}

// look returns the length of full. mu need not be held.
func (s *stock) look() int32 {
	if onStock != nil {
		onStock(s, false)
	}
	return s.length.Load()
}

// lock locks s for a cache.
func (s *stock) lock() {
	if onStock != nil {
		onStock(s, true)
	}
	s.mu.Lock()
}

// onStock, if set, is called before each look, and before each lock by a cache. For tests.
var onStock func(s *stock, lock bool)

// lockStocks locks all stocks of a class.
func (h *Heap) lockStocks(class uint8) {
	for i := range h.stocks {
		h.stocks[i][class].mu.Lock()
	}
}

func (h *Heap) unlockStocks(class uint8) {
	for i := range h.stocks {
		h.stocks[i][class].mu.Unlock()
	}
}

// allocFromStock allocates a block of size bytes from a magazine, and loads the magazine
// into the cache of o or of the processor. slot is that of a try before. It returns the
// status that the block had. If that is not a free status, the block was live already and
// is not the caller's. The error is that of a new span, or of memory for the magazine.
func (h *Heap) allocFromStock(class uint8, slot, size int) (addr uintptr, was uint16, err error) {
	s := h.lockFull(class, slot)
	defer s.mu.Unlock()
	s.begin(h)
	s.allocs++
	m, err := s.filled(h)
	var e entry
	if err == nil {
		e = m.pop()
	} else if e = h.central[class].carveOne(); e.addr == 0 {
		return 0, 0, err
	}
	was = e.claim(size)
	if m != nil {
		s.exchange(h, m)
	}
	return e.addr, was, nil
}

// freeToStock frees b, of that class, into an empty magazine, and loads that into the cache of o or
// of the processor. slot is that of a try before. It reports false if b is not exactly a live block.
func (h *Heap) freeToStock(class uint8, slot int, b []byte) bool {
	s := h.lockRoomy(class, slot)
	defer s.mu.Unlock()
	s.begin(h)
	m, err := s.newMagazine(h)
	slot = h.enter()
	e := liveEntry(h, b)
	if e.addr != 0 {
		*statusAt(e.status) = freeDirty
		s.frees++
	}
	h.caches.Leave(slot)
	switch {
	case err == nil && e.addr != 0:
		m.push(e)
		s.exchange(h, m)
	case err == nil:
		s.discard(h, m)
	case e.addr != 0:
		h.central[class].takeBack(h, []entry{e}) // there is no memory for a magazine
	}
	return e.addr != 0
}

// begin notes that a cache is about to move blocks.
func (s *stock) begin(h *Heap) {
	s.used = true
	h.pages.Wake()
	if (s.allocs+s.frees)%64 == 0 { // the clock is not read each time
		h.pages.WakeAgain()
	}
}

// exchange loads m into the cache of o or of the processor, and keeps the magazine that it gets for it.
func (s *stock) exchange(h *Heap, m *magazine) {
	slot := h.enter()
	out := h.caches.Entry(slot).exchange(s.class, m)
	h.caches.Leave(slot)
	if out != nil {
		s.put(h, out)
	}
}

// put puts a magazine on a pile, or returns its blocks to their spans.
func (s *stock) put(h *Heap, m *magazine) {
	switch {
	case m.n == 0:
		s.discard(h, m)
	case s.hasRoom(h):
		before := s.bursting(h)
		s.full.push(m)
		s.length.Store(s.full.n)
		s.burst(h, before)
	default:
		s.flush(h, m)
	}
}

// mostMagazines returns how many magazines with blocks a stock of the class keeps. A block that
// goes into its span and comes back costs more than the rest of Free and Alloc, so a burst of
// frees is kept whole if it is small. A limit keeps less, since the blocks are out of other
// classes' reach.
func (h *Heap) mostMagazines(class uint8) int {
	const (
		most       = 128
		bytes      = 1 << 20 // of the blocks in them
		limitShare = 1024
	)
	room := uintptr(bytes)
	if limit := h.pages.Limit(); limit != 0 {
		room = min(room, limit/limitShare)
	}
	c := &classes[class]
	return h.groupsPart(max(maxStock, min(most, int(room/max(1, c.batch*c.size))))) // class 0 has none
}

// hasRoom reports whether put may push a magazine.
func (s *stock) hasRoom(h *Heap) bool {
	n := int(s.full.n)
	return n < h.groupsPart(maxStock) || n < h.mostMagazines(s.class) && h.burst.Load() < h.mostBurst()
}

// bursting returns the bytes that s has room for in the magazines that it has beyond its part of
// maxStock.
func (s *stock) bursting(h *Heap) int64 {
	c := &classes[s.class]
	return int64(max(0, int(s.full.n)-h.groupsPart(maxStock))) * int64(c.batch*c.size)
}

// burst counts the change of bursting since before. Stocks that keep few magazines leave the
// counter of the heap alone.
func (s *stock) burst(h *Heap, before int64) {
	if now := s.bursting(h); now != before {
		h.burst.Add(now - before)
	}
}

// mostBurst is what bursting may be of all stocks together. Without it, a program whose sizes change with
// its phases has up to 1 MiB of free blocks in the stock of each class that it no longer uses.
func (h *Heap) mostBurst() int64 {
	const (
		least = 1 << 20 // as much as one class has
		share = 32      // of what is committed
	)
	return int64(max(least, h.pages.CommittedNow()/share))
}

// groupsPart returns a group's part of n, rounded up.
func (h *Heap) groupsPart(n int) int {
	return (n + len(h.stocks) - 1) >> bits.Len(uint(len(h.stocks)-1))
}

// filled returns a magazine with one free block at least.
func (s *stock) filled(h *Heap) (*magazine, error) {
	if m := s.pop(h); m != nil {
		return m, nil
	}
	m, err := s.newMagazine(h)
	if err != nil {
		return nil, err
	}
	if err := h.central[s.class].fill(h, m); err != nil {
		s.discard(h, m)
		return nil, err
	}
	return m, nil
}

// pop takes a magazine with blocks from s, nil if there is none.
func (s *stock) pop(h *Heap) *magazine {
	before := s.bursting(h)
	m := s.full.pop()
	if m != nil {
		s.burst(h, before)
		s.length.Store(s.full.n)
		s.unused = min(s.unused, int16(s.full.n))
	}
	return m
}

// flush returns a magazine's blocks to their spans.
func (s *stock) flush(h *Heap, m *magazine) {
	h.central[s.class].takeBack(h, m.entries(m.n))
	m.n = 0
	s.discard(h, m)
}

// newMagazine returns an empty magazine.
func (s *stock) newMagazine(h *Heap) (*magazine, error) {
	if m := s.empty.pop(); m != nil {
		return m, nil
	}
	addr, err := h.pages.AllocObject(classes[s.class].magazineBytes())
	if err != nil {
		return nil, err
	}
	m := magazineAt(addr)
	m.sentinel = sentinel.entry
	return m, nil
}

// discard keeps an empty magazine for newMagazine, or frees it.
func (s *stock) discard(h *Heap, m *magazine) {
	if int(s.empty.n) < max(h.groupsPart(maxEmptyMagazines), h.mostMagazines(s.class)-int(s.full.n)) {
		s.empty.push(m)
	} else {
		s.freeMagazine(h, m)
	}
}

func (s *stock) freeMagazine(h *Heap, m *magazine) {
	h.pages.FreeObject(m.addr(), classes[s.class].magazineBytes())
}

// tick returns the magazines that nobody took since the last tick to their spans. It reports
// whether blocks have moved since.
func (s *stock) tick(h *Heap) (used bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range s.unused {
		s.flush(h, s.pop(h))
	}
	used, s.used, s.unused = s.used, false, int16(s.full.n)
	return used
}

// clear returns all magazines. mu is held.
func (s *stock) clear(h *Heap) {
	for m := s.pop(h); m != nil; m = s.pop(h) {
		s.flush(h, m)
	}
	for m := s.empty.pop(); m != nil; m = s.empty.pop() {
		s.freeMagazine(h, m)
	}
	s.used = false
}
