// Depots: the magazines of a class that no cache has. (Bonwick's term; tcmalloc's transfer cache.)
//
//	cache <--+--> depot of the home     <--+-- blocks --> spans of the home
//	         +--> depots of other homes <--+
//
// A depot has a pile of stocked magazines, which have at least one block each, and a pile of empty
// ones. A full magazine, which has no room, is stocked too. The blocks of one magazine may be of
// any span of the class. Blocks that one processor frees and another allocates pass through the
// depot, not through their spans.
//
// Each processor is a home. (More than maxHomes processors share homes.) A home has a depot for
// each class, with a lock of its own, and spans of its own: see central.go. So a processor mostly
// allocates blocks that it has used before, and other processors seldom write to their statuses.
// Two rules keep it so:
//
//   - Alloc asks the home's depot, then the home's spans, then the half-free spans of other homes,
//     which it adopts, and then the depots of other homes. A heap without a limit adds a span
//     instead of that last step if the class has few free blocks: see adds.
//   - Free sends the blocks of other homes back, in batches: see sendHome.
//
// # The exchange
//
// A cache comes here when both its magazines are empty (AllocFromDepot) or full (FreeToDepot):
//
//  1. lock a depot: the home's, or another that has blocks
//  2. take a magazine: Alloc a stocked one, or an empty one that is filled from the spans; Free an
//     empty one
//  3. pop or push the caller's block
//  4. hold the slot, load the magazine into the cache, and take the cache's spare
//  5. send blocks of other homes back, keep the rest in the depot, and unlock
//
// The goroutine may have moved to another processor since its fast path failed, and the magazines
// of that processor's cache may be in any state. So the spare may be empty, full or partly filled.
//
// Counting and drains lock all depots of a class, so they never miss a magazine on its way between
// a cache, a depot and the spans.

package small

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/pages"
)

// Each class may always keep leastStocked magazines with blocks and leastEmpty empty ones. The homes
// share these numbers, and each share is rounded up. mostStocked and mostEmpty allow more.
var (
	leastStocked = max(4, runtime.NumCPU()/2)
	leastEmpty   = max(2, runtime.NumCPU()/4)
)

// depot has the magazines of one home and one class. mu guards it.
//
// Invariants:
//   - stocked.n <= mostStocked and empty.n <= mostEmpty, until a payer lowers the limit
//   - length == stocked.n
//   - Heap.extra is the sum of extra over all depots
type depot struct {
	mu            lockrank.Mutex[lockrank.Depot]
	stocked       pile         // magazines with blocks
	empty         pile         // magazines without
	length        atomic.Int32 // stocked.n, for readers without mu
	lowWater      int16        // the least stocked.n since the last tick
	used          bool         // blocks have moved since the last tick
	class         uint8
	allocs, frees uint64 // calls of AllocFromDepot, and of FreeToDepot with a live block
}

const _ = 64 - unsafe.Sizeof(depot{})

// depot returns a home's depot of the class. It adds the home if need be. The caller holds no depot.
func (h *Heap) depot(class uint8, i int) *depot {
	x := h.homes[i].Load()
	if x == nil {
		x = h.addHome(i)
	}
	return &x.depots[class]
}

// addHome adds a home, unless another goroutine has done so.
func (h *Heap) addHome(i int) *home {
	h.adding.Lock()
	defer h.adding.Unlock()
	if x := h.homes[i].Load(); x != nil {
		return x
	}
	x := &home{}
	for class := range x.depots {
		x.depots[class].class = uint8(class)
	}
	h.homes[i].Store(x)
	return x
}

// look returns the number of stocked magazines, without mu.
func (d *depot) look() int32 {
	if onDepot != nil {
		onDepot(d, false)
	}
	return d.length.Load()
}

// lock locks d for a cache.
func (d *depot) lock() {
	if onDepot != nil {
		onDepot(d, true)
	}
	d.mu.Lock()
}

// onDepot, if set, is called before each look, and before each lock by a cache. For tests.
var onDepot func(d *depot, lock bool)

// lockDepots locks all depots of a class. No home is added until unlockDepots.
func (h *Heap) lockDepots(class uint8) {
	h.adding.Lock()
	for _, x := range h.homes.all {
		x.depots[class].mu.Lock()
	}
}

func (h *Heap) unlockDepots(class uint8) {
	for _, x := range h.homes.all {
		x.depots[class].mu.Unlock()
	}
	h.adding.Unlock()
}

// Slots are the places of the caches. A goroutine may use a slot's cache from Hold to Leave. It
// must not block meanwhile.
type Slots interface {
	Hold() (slot int, c *Magazines) // c is nil if the slot has no cache
	Leave(slot int)
}

// AllocFromDepot allocates a block of size bytes of a class from a magazine, and exchanges the
// magazine. It returns the block's address and previous status. If was is not a free status, the
// block was freed twice and is already live: it stays with its owner. If there is no memory for a
// magazine, AllocFromDepot takes the block from a span. It fails if no span has a free block
// either. The caller has found no block in the cache of slot, and has left the slot.
func (h *Heap) AllocFromDepot(in Slots, class uint8, slot, size int) (addr uintptr, was uint16, err error) {
	d, m, err := h.fetch(class, slot)
	defer d.mu.Unlock()
	d.begin(h)
	d.allocs++
	if err != nil {
		e := h.central[class].carveOne(h.homeOf(slot))
		if e.Addr == 0 {
			return 0, 0, err
		}
		return e.Addr, e.claim(size), nil
	}
	e := m.pop()
	was = e.claim(size)
	d.exchange(h, in, m)
	return e.Addr, was, nil
}

// FreeToDepot frees b, a block of the class, into an empty magazine, and exchanges the magazine. If
// there is no memory for a magazine, the block returns to its span. FreeToDepot reports false if b
// is not exactly a live block. The caller has found no room in the cache of slot, and has left the
// slot.
func (h *Heap) FreeToDepot(in Slots, class uint8, slot int, b []byte) bool {
	d := h.depot(class, h.homeOf(slot))
	d.lock()
	defer d.mu.Unlock()
	d.begin(h)
	m, _ := d.newMagazine(h)
	slot, _ = in.Hold() // so no drain frees the status of b
	e := h.freeEntry(class, b)
	in.Leave(slot)
	switch {
	case e.Addr == 0:
		if m != nil {
			d.discard(h, m)
		}
		return false
	case m == nil:
		h.central[class].restore(h, []Entry{e})
	default:
		m.push(e)
		d.exchange(h, in, m)
	}
	d.frees++
	return true
}

// exchange loads m into the cache of the goroutine's processor. d keeps the magazine that the cache
// gives up, or m if the slot has no cache.
func (d *depot) exchange(h *Heap, in Slots, m *magazine) {
	slot, c := in.Hold()
	if c != nil {
		m = c.exchange(d.class, m)
	}
	in.Leave(slot)
	if m != nil && len(h.homes) > 1 {
		m = d.sendHome(h, m, h.homeOf(slot))
	}
	d.keep(h, m)
}

// sendHome sends the blocks of other homes back. m is a magazine that a cache of home gave up.
// sendHome looks at up to four blocks of m, because a look at all would take longer than their Free:
//
//   - More than half are home's: m stays whole.
//   - Half are home's: the blocks of other homes return to their spans.
//   - Fewer are home's: the goroutine has come from another processor, or it frees blocks that
//     others allocate. m goes whole to the depot of the last other home seen, so a consumer's
//     magazines go to its producer. m stays if that depot is locked, or has more than a quarter as
//     many stocked magazines as d.
//
// sendHome returns the magazine for d to keep, or nil. d.mu is held.
func (d *depot) sendHome(h *Heap, m *magazine, home int) *magazine {
	all, own, other := m.entries(m.n), 0, home
	samples := min(4, max(2, len(all)/16), len(all))
	for i := range samples {
		if of := d.spanHome(all[i*len(all)/samples], home); of == home {
			own++
		} else {
			other = of
		}
	}
	switch {
	case own*2 > samples || samples == 0:
		return m
	case own*2 < samples:
		x := h.homes[other&(len(h.homes)-1)].Load() // a freed span's home may be any number
		if x == nil {
			return m
		}
		to := &x.depots[d.class]
		if to == d || to.look() > d.stocked.n/4 || !to.mu.TryLock() { // no Lock: lockDepots may wait for d
			return m
		}
		defer to.mu.Unlock()
		empty := to.empty.pop()
		to.keep(h, m)
		return empty
	}
	own = 0
	for i, e := range all {
		if d.spanHome(e, home) == home {
			all[own], all[i] = e, all[own]
			own++
		}
	}
	m.n = uintptr(own)
	h.central[d.class].restore(h, all[own:])
	return m
}

// spanHome returns the home of an entry's span, or otherwise if the entry has no span of the class.
// Only a double free leaves such an entry. spanHome takes no lock. The span of a sound entry is not
// freed meanwhile, because the entry's block is out of it. Its home may change: it is only a hint.
//
//go:norace
func (d *depot) spanHome(e Entry, otherwise int) int {
	s := SpanAt(e.Addr)
	if s == nil || s.Kind != pages.BlockRun || s.class != d.class {
		return otherwise
	}
	return int(s.home)
}

// begin notes that a cache is about to move blocks.
func (d *depot) begin(h *Heap) {
	d.used = true
	h.pages.Wake()
	if (d.allocs+d.frees)%64 == 0 { // the clock is not read each time
		h.pages.WakeAgain()
	}
}

// keep takes the magazine that a cache gave up. If the depot has no room, keep returns the blocks
// to their spans. It ignores nil.
func (d *depot) keep(h *Heap, m *magazine) {
	switch {
	case m == nil:
	case m.n == 0:
		d.discard(h, m)
	case d.hasRoom(h):
		before := d.extra(h)
		d.stocked.push(m)
		d.length.Store(d.stocked.n)
		d.noteExtra(h, before)
		if int(d.empty.n) > d.mostEmpty(h) {
			h.freeMagazine(d.class, d.empty.pop())
		}
	default:
		d.flush(h, m)
	}
}

// mostStocked returns the most magazines with blocks that a depot of the class keeps. Returning a
// block to its span and carving it again costs more than the rest of Free and Alloc, so a small
// burst of frees is kept whole. A heap with a limit keeps less, because other classes cannot use
// the blocks.
func (h *Heap) mostStocked(class uint8) int {
	const limitShare = 1024
	c := &classes[class]
	most := c.mostStocked
	if limit := h.pages.Limit(); limit != 0 {
		most = min(most, int(limit/limitShare/max(1, c.batch*c.size))) // class 0 has no bytes
	}
	return max(h.homeShare(leastStocked), most)
}

// mostEmpty returns the most empty magazines that d keeps.
func (d *depot) mostEmpty(h *Heap) int {
	return max(h.homeShare(leastEmpty), h.mostStocked(d.class)-int(d.stocked.n))
}

// hasRoom reports whether keep may push a magazine.
func (d *depot) hasRoom(h *Heap) bool {
	n := int(d.stocked.n)
	return n < h.homeShare(leastStocked) || n < h.mostStocked(d.class) && h.hasExtra()
}

// extra returns the bytes of blocks that d's magazines beyond its share of leastStocked can hold.
func (d *depot) extra(h *Heap) int64 {
	c := &classes[d.class]
	return int64(max(0, int(d.stocked.n)-h.homeShare(leastStocked))) * int64(c.batch*c.size)
}

// noteExtra adds the change of d's extra to the heap's counter. before is d's extra before the
// change. The extra of a depot with few magazines stays 0, so it never writes to the counter.
func (d *depot) noteExtra(h *Heap, before int64) {
	if now := d.extra(h); now != before {
		h.extra.Add(now - before)
	}
}

// hasExtra reports whether the extra bytes of all depots together are below their bound. Without the
// bound, a program whose sizes change with its phases keeps up to 1 MiB of free blocks in each class
// that it no longer uses. CommittedNow takes a lock, so hasExtra avoids it.
func (h *Heap) hasExtra() bool {
	const (
		least = 1 << 20 // the bound of one class: depotBytes
		share = 32      // part of the committed bytes
	)
	extra := h.extra.Load()
	return extra < least || extra < int64(h.pages.CommittedNow()/share)
}

// homeShare returns a home's share of n, rounded up.
func (h *Heap) homeShare(n int) int {
	return (n + len(h.homes) - 1) >> bits.Len(uint(len(h.homes)-1))
}

// fetch takes a magazine with at least one free block for a slot, from the depot d, whose lock it
// takes: the depot of the slot's home, or another home's if neither that depot nor a span provides
// any. Each home asks the others in its own order, so homes in need seldom meet at one depot. If
// there is no memory, fetch returns the home's depot and no magazine.
func (h *Heap) fetch(class uint8, slot int) (d *depot, m *magazine, err error) {
	home := h.homeOf(slot)
	own, others := h.depot(class, home), 0
	own.lock()
	if own.stocked.n == 0 && h.central[class].partial(home).n.Load() == 0 {
		for x := range h.homes.others(home) {
			others += int(x.depots[class].look())
		}
	}
	if m, err = own.popOrFill(h, home, others); m != nil || others == 0 {
		return own, m, err
	}
	own.mu.Unlock()
	for x := range h.homes.others(home) {
		d := &x.depots[class]
		if d.look() == 0 {
			continue
		}
		d.lock()
		if m := d.pop(h); m != nil {
			return d, m, nil
		}
		d.mu.Unlock()
	}
	own.lock()
	m, err = own.popOrFill(h, home, 0)
	return own, m, err
}

// popOrFill takes a magazine with blocks from d, the depot of home, or fills one: see fill. It
// returns nil if it has none.
func (d *depot) popOrFill(h *Heap, home, others int) (*magazine, error) {
	if m := d.pop(h); m != nil {
		return m, nil
	}
	m, err := d.newMagazine(h)
	if err != nil {
		return nil, err
	}
	if err := h.central[d.class].fill(h, m, home, others); err != nil || m.n == 0 {
		d.discard(h, m)
		return nil, err
	}
	return m, nil
}

// pop takes a magazine with blocks from d, or nil.
func (d *depot) pop(h *Heap) *magazine {
	before := d.extra(h)
	m := d.stocked.pop()
	if m != nil {
		d.noteExtra(h, before)
		d.length.Store(d.stocked.n)
		d.lowWater = min(d.lowWater, int16(d.stocked.n))
	}
	return m
}

// flush returns a magazine's blocks to their spans.
func (d *depot) flush(h *Heap, m *magazine) {
	h.central[d.class].restore(h, m.entries(m.n))
	m.n = 0
	d.discard(h, m)
}

// newMagazine returns an empty magazine.
func (d *depot) newMagazine(h *Heap) (*magazine, error) {
	if m := d.empty.pop(); m != nil {
		return m, nil
	}
	addr, err := h.pages.AllocObject(classes[d.class].magazineBytes())
	if err != nil {
		return nil, err
	}
	m := magazineAt(addr)
	m.sentinel = sentinel.entry
	return m, nil
}

// discard keeps an empty magazine for newMagazine, or frees it.
func (d *depot) discard(h *Heap, m *magazine) {
	if int(d.empty.n) < d.mostEmpty(h) {
		d.empty.push(m)
	} else {
		h.freeMagazine(d.class, m)
	}
}

func (h *Heap) freeMagazine(class uint8, m *magazine) {
	h.pages.FreeObject(m.addr(), classes[class].magazineBytes())
}

// tick flushes the magazines that no cache has taken since the last tick. It reports whether a
// cache has moved blocks here since then.
func (d *depot) tick(h *Heap) (used bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for range d.lowWater {
		d.flush(h, d.pop(h))
	}
	used, d.used, d.lowWater = d.used, false, int16(d.stocked.n)
	return used
}

// clear returns the blocks of all magazines to their spans, and frees the magazines. mu is held.
func (d *depot) clear(h *Heap) {
	for m := d.pop(h); m != nil; m = d.pop(h) {
		d.flush(h, m)
	}
	for m := d.empty.pop(); m != nil; m = d.empty.pop() {
		h.freeMagazine(d.class, m)
	}
	d.used = false
}

// forget drops all magazines of a closed heap without freeing them. The page heap frees their
// memory. mu is held.
func (d *depot) forget() {
	d.stocked, d.empty, d.lowWater = pile{}, pile{}, 0
	d.length.Store(0)
}
