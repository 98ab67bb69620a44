// Reclaim: room for a new item, by emptying a segment.
//
//	allot --> makeRoom --> reclaim --> evacuate --> decide --> keep --> allotAvailable
//	                                                       --> drop
//
// policy.go chooses the segment, and the rule by which its items stay. Items that stay are copied
// to the open segment of their queue and TTL class. The others are dropped. Before that, reclaimFor
// drops items that have expired.

package cache

import (
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/blocks"
	"github.com/freehold-go/freehold/internal/prefetch"
)

// ahead is the distance, in bytes of a segment, at which items are prefetched.
const ahead = 4 << 10

// expiredItems is about how many items expireIn drops in one call.
const expiredItems = 256

// allot returns memory for an item, as allotAvailable does. If no open segment has room, it
// reclaims segments until a new one fits.
func (s *shard) allot(w *want) (at spot, ok bool) {
	n, f := s.segmentFor(w, s.limit)
	if n != 0 {
		return s.allotIn(n, w), true
	}
	// A smaller segment of about the same score may fit the available bytes, without reclaiming.
	if rest := s.available() - s.reserve(); rest > 0 && rest < f.bytes {
		if _, small := s.segmentFor(w, rest); small.bytes <= rest && small.score >= f.score-restLoss {
			f = small
		}
	}
	s.refused = nil
	for range 2 { // once more if the parent refuses
		if !s.makeRoom(f.bytes) || w.kept && s.available() < f.bytes+s.reserve() {
			return spot{}, false // kept items leave the reserve, so that they can be copied
		}
		if n, _ = s.segmentFor(w, 0); n != 0 { // reclaiming has opened it, for copies
			return s.allotIn(n, w), true
		}
		if at, ok = s.allotNew(w, f); ok {
			return at, true
		}
	}
	return spot{}, false
}

// reserve returns the bytes that stay available for copies of items. If no number is unused, they
// include a page.
func (s *shard) reserve() int {
	n := reserveSegments
	if s.isMixed() || s.isDirty() {
		n = reserveIfDirty
	}
	bytes := n * s.c.segmentBytes
	if len(s.segs.unused) == 0 {
		bytes += pageBytes
	}
	return bytes
}

// makeRoom reclaims segments until the given bytes and the reserve are available. It reports
// whether the bytes are, with or without the reserve. If a part of the disk index waits for a chunk,
// makeRoom also reclaims the bytes of that.
func (s *shard) makeRoom(bytes int) bool {
	if s.tier != nil && s.tier.wants != nil && s.reclaimFor(bytes+s.c.segmentBytes) {
		s.tier.addWanted()
	}
	return s.reclaimFor(bytes)
}

// reclaimFor is makeRoom without the chunk of the disk index.
func (s *shard) reclaimFor(bytes int) bool {
	s.retireLimbo()
	s.rebalance()
	enough := bytes + s.reserve()
	if s.due != 0 && s.available() < enough {
		s.expire(s.c.clock.now(), enough)
	}
	for round := 0; s.available() < enough; round++ {
		if !s.reclaim(round, Room) {
			return s.available() >= bytes
		}
	}
	return true
}

// expire drops items that have expired at the second now, until enough bytes are available.
func (s *shard) expire(now uint32, enough int) {
	if s.due == 0 || s.due > now {
		return
	}
	due := uint32(0)
	for n := range s.segs.count() {
		for more := true; more; {
			more = s.expireIn(n, now)
			if s.available() >= enough {
				return
			}
		}
		due = earlier(due, s.dueIn(n))
	}
	s.due = due
}

// expireIn drops items of segment n that have expired at the second now, about expiredItems at a
// time. It reports whether there may be more.
func (s *shard) expireIn(n, now uint32) (more bool) {
	if n >= s.segs.count() {
		return false
	}
	g := s.segs.at(n)
	if g.state != open && g.state != sealed {
		return false
	}
	most := expiredItems
	for p, due := range g.due {
		if due != 0 && due <= now && !more {
			more = !s.expirePart(n, p, now, &most)
		}
	}
	s.retireEmpty(n)
	return more
}

// expirePart is expireIn in a part of the segment. It drops about *most items, and subtracts them
// from *most. It reports whether it has looked at the whole part.
func (s *shard) expirePart(n uint32, part int, now uint32, most *int) bool {
	g := s.segs.at(n)
	due := uint32(0)
	end := min(g.endOf(part), g.used)
	var batch [batchKeys]candidate
	for offset := g.first[part] - 1; offset < end; {
		items := batch[:0]
		for offset < end && len(items) < len(batch) {
			it := g.item(offset)
			expires := it.expires.Load()
			switch {
			case expires == 0 || expires == handled:
			case s.c.clock.secondOf(expires) > now || s.segs.place(n, offset) == s.held:
				due = earlier(due, s.c.clock.secondOf(expires))
			case !it.expires.CompareAndSwap(expires, handled): // a read has changed it
				continue
			default:
				h := s.c.seed.Bytes(it.key())
				s.index.Prefetch(tagOf(h))
				items = append(items, candidate{h, offset})
			}
			offset += uint32(it.size())
		}
		s.dropExpired(n, items, now)
		if *most -= len(items); *most <= 0 && offset < end {
			return false
		}
	}
	g.due[part] = due
	return true
}

// dropExpired drops the items of segment n that have slots. If OnEvict panics, it gives the rest
// their expiry back.
func (s *shard) dropExpired(n uint32, items []candidate, now uint32) {
	defer func() {
		for _, x := range items {
			s.segs.at(n).item(x.offset).expires.Store(now)
		}
	}()
	for len(items) > 0 {
		x := items[0]
		items = items[1:]
		if at := s.index.Find(tagOf(x.hash), maxPlace, uint64(s.segs.place(n, x.offset))); at != nil {
			s.drop(at, Expired)
		}
	}
}

// reclaim empties a segment, and reports whether there is one to empty. In later rounds of one call
// fewer items stay.
func (s *shard) reclaim(round int, why Reason) bool {
	for keptToo := true; ; {
		if n, r := s.victim(round, keptToo); n != 0 {
			s.evacuate(n, r, why)
			if g := s.segs.at(n); !g.isKept() || g.live == 0 {
				return true
			}
			keptToo = false // there is no memory for copies
		} else if !s.sealAll(false) {
			return false
		}
	}
}

// evacuate empties a sealed segment.
func (s *shard) evacuate(n uint32, r rule, why Reason) {
	s.forgetRest(n) // else the segment could take copies of its own items
	g := s.segs.at(n)
	var batch [batchKeys]candidate
	for offset := uint32(0); offset < g.used && g.live > 0; {
		items := batch[:0]
		for offset < g.used && len(items) < len(batch) {
			it := g.item(offset)
			size := it.size()
			prefetch.Lines(g.addr+uintptr(offset)+ahead, min(size, ahead)/blocks.LineBytes+1)
			h := s.c.seed.Bytes(it.key())
			s.index.Prefetch(tagOf(h))
			items = append(items, candidate{h, offset})
			offset += uint32(size)
		}
		for _, x := range items {
			at := s.index.Find(tagOf(x.hash), maxPlace, uint64(s.segs.place(n, x.offset)))
			if at != nil {
				s.decide(at, g.item(x.offset), x.hash, r, why)
			}
		}
	}
	if g.live == 0 {
		s.retire(n)
	}
}

// A candidate is an item of a segment that is being emptied.
type candidate struct {
	hash   uint64
	offset uint32
}

// decide keeps or drops the item of a slot by a rule.
func (s *shard) decide(at *atomic.Uint64, it *item, h uint64, r rule, why Reason) {
	w := slot(at.Load())
	main, hits, stays := s.stays(r, w, it.content())
	switch {
	case it.hasExpired(&s.c.clock):
		s.drop(at, Expired)
	case stays && s.keep(at, it, main, hits), r.leaves:
	default:
		s.evicted(w, h)
		s.evict(at, it, h, why)
	}
}

// keep copies an item to a queue, with the given hits, and reports whether there was memory for the
// copy. An item that is alone stays where it is, and its segment goes to the end of the queue.
func (s *shard) keep(at *atomic.Uint64, it *item, main bool, hits int) bool {
	w := slot(at.Load())
	n, _ := s.segs.split(w.place())
	g := s.segs.at(n)
	if g.alone {
		s.age++
		g.main, g.turn = main, s.age
		at.Store(uint64(slotOf(w.tag(), w.place(), main, hits)))
		return true
	}
	left := seconds(max(s.c.clock.left(it.expires.Load()), 0))
	before := s.version(w, it)
	above := before - 1
	if it.shape&promoted != 0 {
		above = abovePositions // keep the version: the entry is on disk with it
	}
	// The copy may keep the version or take a higher one, so its position must be above before - 1.
	to, ok := s.allotAvailable(&want{it.need(), left, main, g.isKept(), above})
	if !ok {
		return false
	}
	moved := s.itemIn(to)
	it.copyTo(moved, to.shape)
	if to.shape == versioned {
		s.setVersion(moved, before)
	}
	s.count(to)
	at.Store(uint64(slotOf(w.tag(), s.segs.place(to.n, to.offset), main, hits)))
	s.uncount(g, it)
	s.copied += uint64(moved.size())
	return true
}

// drop removes a slot, and drops its item.
func (s *shard) drop(at *atomic.Uint64, why Reason) {
	w := slot(at.Load())
	s.index.Remove(at)
	s.dropItem(w.place(), why)
}

// dropItem counts the item at a place as garbage, and reports it to OnEvict.
//
// Precondition: no slot refers to the item.
func (s *shard) dropItem(at place, why Reason) {
	n, offset := s.segs.split(at)
	g := s.segs.at(n)
	it := g.item(offset)
	s.raiseFloor(s.version(slot(at), it)) // of a slot, version reads only the place
	s.uncount(g, it)
	if it.shape.isAbsent() {
		return
	}
	s.dropped[why]++
	if f := s.c.options.OnEvict; f != nil {
		e := s.entryOf(pinned{w: slot(at), it: it}, s.c.accessTime())
		s.c.copier.tell("cache.Options.OnEvict", it.key(), e, func(key []byte, e Entry) { f(key, e, why) })
	}
}
