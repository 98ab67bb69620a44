// Central: the source of all caches for one class.
//
//	cache <-- magazines --> stock <-- blocks --> spans <-- runs --> page heap
//
// The stock is a pile of magazines with free blocks of any span. Blocks that one
// processor frees and another allocates pass through it, and not through the
// spans. A magazine filled from spans holds neighbours. A full span whose first
// block comes back goes to the front of the list of partial ones, so that nearly
// full spans are used first and others can become empty.
//
// # The exchange
//
// A cache comes here when both its magazines are empty (Alloc) or full (Free).
// alloc takes a full magazine from the stock, or fills one from the spans; free
// makes an empty one. Either takes its own block out or puts it in, and then
// exchanges the magazine for the cache's spare under the slot. The goroutine may
// have moved to another processor since its fast path failed, whose cache is in
// any state: full and partly filled magazines come back as well as empty ones.
// The central's lock is held throughout, so Stats and a drain, which take it,
// never miss a magazine between the two.

package heap

import (
	"math/bits"
	"runtime"
	"slices"

	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/pages"
)

// How many magazines a central keeps at least, with blocks and without: more where more
// processors exchange with it. See mostMagazines.
var (
	maxStock          = max(4, runtime.NumCPU()/2)
	maxEmptyMagazines = max(2, runtime.NumCPU()/4)
)

// central is one class of one heap. mu guards it and the spans of its class.
//
// Invariants:
//   - spans with a block free in them are on partial, no others
//   - out == sum of live over the spans
//   - stock is no longer than mostMagazines; nor is emptyMagazines, with the stock, or than
//     maxEmptyMagazines
type central struct {
	mu             lockrank.Mutex[lockrank.Central]
	stock          pile // magazines with blocks
	stocked        int  // blocks in them
	unused         int  // magazines that have been in stock since the last tick
	emptyMagazines pile // magazines without
	class          uint8
	entered        uint8 // how often caches have entered, for WakeAgain
	used           bool  // blocks moved since the last tick
	rested         bool  // nothing moved since all was given back that could be
	partial        pages.List
	spans          int
	empty          int  // spans without a block in use
	released       uint // spans that were freed
	out            int  // blocks that are not free in their span
	holes          int  // bytes of free blocks given back to the system
	traffic        pages.Traffic

	limbo uintptr // statuses of spans that were freed: see limbo.go
}

// alloc allocates a block of size bytes from a magazine, and loads the magazine
// into the cache of o or of the processor. It returns the status that the block
// had. If that is not a free status, the block was live already and is not the
// caller's. The error is that of a new span, or of memory for the magazine.
func (c *central) alloc(h *Heap, o *LocalCache, size int) (addr uintptr, was uint16, err error) {
	c.lock(h)
	defer c.mu.Unlock()
	c.traffic.Allocs++
	m, err := c.filled(h)
	var e entry
	if err == nil {
		e = m.pop()
	} else if e = c.carveOne(); e.addr == 0 {
		return 0, 0, err
	}
	was = e.claim(size)
	if m != nil {
		c.exchange(h, o, m)
	}
	return e.addr, was, nil
}

// free frees b into an empty magazine, and loads that into the cache of o or of the
// processor. It reports false if b is not exactly a live block.
func (c *central) free(h *Heap, o *LocalCache, b []byte) bool {
	c.lock(h)
	defer c.mu.Unlock()
	m, err := c.newMagazine(h)
	e := liveEntry(h, b)
	if e.addr != 0 {
		*statusAt(e.status) = freeDirty
		c.traffic.Frees++
	}
	switch {
	case err == nil && e.addr != 0:
		m.push(e)
		c.exchange(h, o, m)
	case err == nil:
		c.discard(h, m)
	case e.addr != 0:
		c.returnBlocks(h, []entry{e}) // there is no memory for a magazine
	}
	return e.addr != 0
}

// exchange loads m into the cache of o or of the processor, and puts the magazine
// that it gets for it on a pile, or its blocks into their spans.
func (c *central) exchange(h *Heap, o *LocalCache, m *magazine) {
	slot := h.caches.Enter()
	out := h.cacheOf(o, slot).exchange(c.class, m)
	h.caches.Leave(slot)
	switch {
	case out == nil:
	case out.n == 0:
		c.discard(h, out)
	case c.stock.n < c.mostMagazines(h):
		c.stock.push(out)
		c.stocked += int(out.n)
	default:
		c.flush(h, out)
	}
}

// mostMagazines returns how many magazines c keeps. A block that goes into its span and comes
// back costs more than the rest of Free and Alloc, so a burst of frees is kept whole if it is
// small. A limit keeps less, since the blocks are out of other classes' reach.
func (c *central) mostMagazines(h *Heap) int {
	const (
		most       = 128
		bytes      = 1 << 20 // of the blocks in them
		limitShare = 1024
	)
	room := uintptr(bytes)
	if limit := h.pages.Limit(); limit != 0 {
		room = min(room, limit/limitShare)
	}
	class := &classes[c.class]
	return max(maxStock, min(most, int(room/max(1, class.batch*class.size)))) // class 0 has none
}

// flushAll returns the blocks of magazines, which may be nil, to their spans.
func (c *central) flushAll(h *Heap, magazines ...*magazine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range magazines {
		if m != nil {
			c.flush(h, m)
		}
	}
	c.rested = false
}

// filled returns a magazine with one free block at least.
func (c *central) filled(h *Heap) (*magazine, error) {
	if m := c.stock.pop(); m != nil {
		c.stocked -= int(m.n)
		c.unused = min(c.unused, c.stock.n)
		return m, nil
	}
	m, err := c.newMagazine(h)
	if err != nil {
		return nil, err
	}
	all := m.entries(classes[c.class].batch)
	n := 0
	for n < len(all) {
		if c.partial.Head == 0 {
			if n > 0 {
				break
			}
			if err := c.grow(h); err != nil {
				c.discard(h, m)
				return nil, err
			}
		}
		n += c.carve(spanPtr(c.partial.Head), all[n:])
	}
	// The last entry is used first: let that be the lowest address.
	slices.Reverse(all[:n])
	m.n = uintptr(n)
	return m, nil
}

// flush returns a magazine's blocks to their spans.
func (c *central) flush(h *Heap, m *magazine) {
	c.returnBlocks(h, m.entries(m.n))
	m.n = 0
	c.discard(h, m)
}

// newMagazine returns an empty magazine.
func (c *central) newMagazine(h *Heap) (*magazine, error) {
	if m := c.emptyMagazines.pop(); m != nil {
		return m, nil
	}
	addr, err := h.pages.AllocObject(classes[c.class].magazineBytes())
	if err != nil {
		return nil, err
	}
	m := magazineAt(addr)
	m.sentinel = sentinel.entry
	return m, nil
}

// discard keeps an empty magazine for newMagazine, or frees it.
func (c *central) discard(h *Heap, m *magazine) {
	if c.emptyMagazines.n < max(maxEmptyMagazines, c.mostMagazines(h)-c.stock.n) {
		c.emptyMagazines.push(m)
	} else {
		c.freeMagazine(h, m)
	}
}

func (c *central) freeMagazine(h *Heap, m *magazine) {
	h.pages.FreeObject(m.addr(), classes[c.class].magazineBytes())
}

// lock locks c for a cache, and notes that blocks are about to move.
func (c *central) lock(h *Heap) {
	c.mu.Lock()
	c.used, c.rested = true, false
	h.pages.Wake()
	if c.entered++; c.entered%64 == 0 { // the clock is not read each time
		h.pages.WakeAgain()
	}
}

// carveOne returns a free block of a partial span, for want of memory for a
// magazine, or the zero entry.
func (c *central) carveOne() entry {
	var out [1]entry
	for c.partial.Head != 0 {
		if c.carve(spanPtr(c.partial.Head), out[:]) == 1 {
			break
		}
	}
	return out[0]
}

// carve moves free blocks of s to out in the order of their addresses. A block
// whose bit says free and whose status says live was freed twice at once and then
// allocated by its other entry: it stays its owner's.
func (c *central) carve(s *span, out []entry) (n int) {
	if s.live == 0 {
		c.empty--
	}
	carved := 0
	words := classes[c.class].freeWords()
	for w := uintptr(0); w < words && n < len(out); w++ {
		word := s.free.Word(w)
		for *word != 0 && n < len(out) {
			i := w*64 + uintptr(bits.TrailingZeros64(*word))
			*word &= *word - 1
			carved++
			if *statusAt(s.statusOf(i)) >= freeZero {
				out[n] = entry{s.Base + i*s.Size, s.statusOf(i)}
				n++
			}
		}
	}
	s.live += uint32(carved)
	c.out += carved
	c.holes -= int(s.holes)
	s.holes, s.punched = 0, false
	if s.live == uint32(classes[c.class].blocks) {
		c.partial.Remove(&s.Span)
	}
	return n
}

// returnBlocks returns blocks to their spans.
func (c *central) returnBlocks(h *Heap, in []entry) {
	for len(in) > 0 {
		s := spanAt(in[0].addr)
		n := 1
		for s != nil && n < len(in) && in[n].addr-s.Base < s.Bytes() {
			n++
		}
		if s != nil && s.Kind == pages.BlockRun && s.class == c.class {
			c.returnTo(h, s, in[:n])
		}
		in = in[n:]
	}
}

// returnTo returns blocks to s, which they are part of. It frees s if all its blocks
// are free then and another span of the class is empty too. A block that two
// goroutines freed at once may be live again, or back already; it is skipped.
func (c *central) returnTo(h *Heap, s *span, in []entry) {
	blocks := classes[c.class].blocks
	returned := uint32(0)
	for _, e := range in {
		i := (e.status - s.statuses) / statusBytes
		if i >= blocks || s.Base+i*s.Size != e.addr || *statusAt(e.status) < freeZero {
			continue
		}
		word, bit := s.free.Word(i/64), uint64(1)<<(i%64)
		if *word&bit == 0 {
			*word |= bit
			returned++
		}
	}
	if returned == 0 {
		return
	}
	if s.live == uint32(blocks) {
		c.partial.Push(&s.Span)
	}
	s.live -= returned
	s.punched = false
	c.out -= int(returned)
	if s.live > 0 {
		return
	}
	if c.empty++; c.empty > 1 {
		c.release(h, s)
	} else {
		c.partial.Remove(&s.Span)
		c.partial.PushBack(&s.Span)
	}
}

// shrink returns the stock to its spans and frees all empty ones.
func (c *central) shrink(h *Heap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unstock(h, c.stock.n)
	for m := c.emptyMagazines.pop(); m != nil; m = c.emptyMagazines.pop() {
		c.freeMagazine(h, m)
	}
	if c.empty > 0 {
		for at := c.partial.Head; at != 0; {
			s := spanPtr(at)
			at = s.Next
			if s.live == 0 {
				c.release(h, s)
			}
		}
	}
}

// unstock returns n magazines of the stock to their spans.
func (c *central) unstock(h *Heap, n int) {
	for range n {
		m := c.stock.pop()
		c.stocked -= int(m.n)
		c.flush(h, m)
	}
	c.unused = min(c.unused, c.stock.n)
}

// grow adds a span.
func (c *central) grow(h *Heap) error {
	class := &classes[c.class]
	statuses, err := h.pages.AllocObject(class.bitsBytes())
	if err != nil {
		return err
	}
	run, zero, err := h.pages.AllocRun(class.pages, pages.PageBytes)
	if err != nil {
		h.pages.FreeObject(statuses, class.bitsBytes())
		return err
	}
	s := spanOf(run)
	s.class, s.Size = c.class, class.size
	s.statuses, s.free = statuses, pages.Bitmap(statuses+class.statusesBytes())
	s.free.SetRange(0, class.blocks)
	fresh := uint16(freeDirty)
	if zero {
		fresh = freeZero
	}
	for i := range class.blocks {
		*statusAt(s.statusOf(i)) = fresh
	}
	*statusAt(s.statusOf(class.blocks)) = freeDirty
	h.pages.PublishBlocks(run, s.mapEntry(h.mapID), 1<<mapPageShift)
	c.partial.Push(&s.Span)
	c.spans++
	c.empty++
	return nil
}

// release frees an empty span, unless markLiveAgain finds a block in it that is live.
func (c *central) release(h *Heap, s *span) {
	if c.markLiveAgain(s); s.live > 0 {
		return
	}
	c.empty--
	c.partial.Remove(&s.Span)
	c.released++
	c.spans--
	c.holes -= int(s.holes)
	c.bury(h, s)
	h.pages.FreeRun(&s.Span)
}

// close forgets everything. The page heap frees the memory.
func (c *central) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stock, c.emptyMagazines, c.stocked, c.unused, c.partial = pile{}, pile{}, 0, 0, pages.List{}
	c.spans, c.empty, c.out, c.holes, c.limbo = 0, 0, 0, 0, 0
}
