// Reclaim: the choice of the segment to empty, and of its items that stay. This is S3-FIFO by
// segments.
//
//	new key ------------> | small queue: a tenth  | -- 2 hits --> | main queue | --+
//	                                |                                |  ^          | 0 hits
//	                                v fewer                    hits |  +----------+
//	ghost <-------------------- evicted <---------------------------+   one hit less
//	   |
//	   +-- the key is set again: to main
//
// A queue is its sealed segments, by age. The oldest is emptied: items that stay are copied to the
// open segment of their queue and class. While garbagePercent of the bytes are dead or expired, no
// live item is evicted: the segment with most garbage is emptied, and all its live items stay.

package cache

import (
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/blocks"
	"github.com/freehold-go/freehold/internal/prefetch"
)

const (
	smallPercent   = 10 // of the items' bytes
	garbagePercent = 7  // of the items' bytes
	promoteHits    = 2  // from small to main
	patience       = 8  // rounds that evict nothing with hits
	maxGhosts      = 5  // of a bucket, in its note

	ahead = 4 << 10 // bytes of a segment that are asked for before it is read there
)

// A rule is what an item needs to stay when its segment is emptied, and pays for it, in hits. Who
// pays goes to main.
type rule struct{ needs, pays int }

// victims are the segments that may be emptied next; 0 is none.
type victims struct {
	small, main, dirtiest uint32
	smallBytes, mainBytes int
	garbage, most         int // of all, of the dirtiest
}

// reclaim empties a segment and reports whether there is one. From round to round of one call fewer
// items stay.
func (s *shard) reclaim(round int, why Reason) bool {
	for {
		v := s.victims()
		small := v.smallBytes*100 > (v.smallBytes+v.mainBytes)*smallPercent
		more := max(round-patience, 0)
		switch {
		case v.dirtiest != 0 && v.garbage*100 >= (v.smallBytes+v.mainBytes)*garbagePercent:
			s.evacuate(v.dirtiest, rule{needs: more * maxHits, pays: 0}, why)
		case v.small != 0 && (small || v.main == 0):
			s.evacuate(v.small, rule{needs: promoteHits + more, pays: maxHits}, why)
		case v.main != 0:
			s.evacuate(v.main, rule{needs: 1 + more, pays: 1}, why)
		case s.sealAll():
			continue
		default:
			return false
		}
		return true
	}
}

// victims looks at all segments.
func (s *shard) victims() (v victims) {
	now := s.c.clock.now()
	oldestSmall, oldestMain := ^uint64(0), ^uint64(0)
	s.segs.each(func(n uint32, g *segment) {
		if g.state != open && g.state != sealed {
			return
		}
		garbage := g.garbage(now)
		v.garbage += garbage
		if g.main {
			v.mainBytes += int(g.used)
		} else {
			v.smallBytes += int(g.used)
		}
		if g.state == open {
			return
		}
		if garbage > v.most && !s.segs.isPinned(n) {
			v.dirtiest, v.most = n, garbage
		}
		switch {
		case g.main && g.turn < oldestMain && !s.segs.isPinned(n):
			v.main, oldestMain = n, g.turn
		case !g.main && g.turn < oldestSmall && !s.segs.isPinned(n):
			v.small, oldestSmall = n, g.turn
		}
	})
	return v
}

// evacuate empties a sealed segment.
func (s *shard) evacuate(n uint32, r rule, why Reason) {
	g := s.segs.at(n)
	var batch [batchKeys]found
	for offset := uint32(0); offset < g.used && g.live > 0; {
		items := batch[:0]
		for offset < g.used && len(items) < len(batch) {
			it := g.item(offset)
			size := it.size()
			prefetch.Lines(g.addr+uintptr(offset)+ahead, min(size, ahead)/blocks.LineBytes+1)
			h := s.c.seed.Bytes(it.key())
			s.index.Prefetch(tagOf(h))
			items = append(items, found{h, offset})
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

// A found is an item of a segment that is being emptied.
type found struct {
	hash   uint64
	offset uint32
}

// decide keeps or drops the item of a slot, for evacuate.
func (s *shard) decide(at *atomic.Uint64, it *item, h uint64, r rule, why Reason) {
	w := slot(at.Load())
	switch {
	case it.hasExpired(&s.c.clock):
		s.drop(at, Expired)
	case w.hits() >= r.needs && s.keep(at, it, r.pays):
	default:
		if !w.main() {
			s.remember(h)
		}
		s.drop(at, why)
	}
}

// keep copies an item, and reports whether there was memory for that. A large one stays where it
// is, and its segment becomes the newest.
func (s *shard) keep(at *atomic.Uint64, it *item, pays int) bool {
	w := slot(at.Load())
	main, hits := w.main() || pays > 0, max(w.hits()-pays, 0)
	n, _ := s.segs.split(w.place())
	g := s.segs.at(n)
	expires := it.expires.Load()
	left := seconds(max(s.c.clock.left(expires), 0))
	if int(g.bytes) != s.c.segmentBytes {
		s.age++
		g.main, g.turn = main, s.age
		g.expiry.begin(s.c.clock.now(), left)
		g.note(expires, it.size())
		at.Store(uint64(slotOf(w.tag(), w.place(), main, hits)))
		return true
	}
	before := s.version(w, it)
	to, offset, own, ok := s.allot(it.need(), left, main, true, before-1)
	if !ok {
		return false
	}
	moved := s.segs.at(to).item(offset)
	it.copyTo(moved, own)
	if own != 0 {
		s.setVersion(moved, before)
	}
	s.count(s.segs.at(to), moved)
	at.Store(uint64(slotOf(w.tag(), s.segs.place(to, offset), main, hits)))
	s.uncount(g, it)
	s.copied += uint64(moved.size())
	return true
}

// remember adds the ghost of a key with that hash.
func (s *shard) remember(h uint64) {
	b := s.index.First(tagOf(h))
	b.Note = (b.Note<<ghostBits | ghostOf(h)) & (1<<(maxGhosts*ghostBits) - 1)
}

// remembers reports whether there is a ghost of a key with that hash.
func (s *shard) remembers(h uint64) bool {
	for g := s.index.First(tagOf(h)).Note; g != 0; g >>= ghostBits {
		if g&(1<<ghostBits-1) == ghostOf(h) {
			return true
		}
	}
	return false
}
