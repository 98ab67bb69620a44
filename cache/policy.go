// Policy: S3-FIFO by segments.
//
//	new key --> | small queue: a tenth | -- 2 or more hits --> | main queue | <--+
//	               |                                              |     |        |
//	               | 0 or 1 hit                            0 hits |     +--------+
//	               v                                              v     1 or more hits, one less
//	            evicted, leaves a ghost                        evicted
//	               |
//	               +-- the key is set again --> main queue
//
// A queue is a list of sealed segments, ordered by turn. The first is emptied: items that stay are
// copied to the open segment of their queue and TTL class. If at least garbagePercent of the bytes
// are dead or expired, the segment with the most garbage is emptied instead, and all its live items
// stay.
//
// A ghost is 12 bits of the hash of a key that was evicted from the small queue. The ghost queue is
// spread over the buckets of the index. Each bucket has up to five ghosts, in its note:
//
//	note           | 0 | ghost 12 bits | ... five in all, the newest last |
//
// Another policy is another file with these functions:
//
//	admit      the queue and the hits of a new item
//	onHit      the slot of an item after a read
//	victim     the segment to empty, and the rule by which its items stay
//	after      the queue and the hits of an item that stays
//	evicted    notes an item that does not stay
//	worst      the item that goes if a bucket of the index is full
//
// A policy can use two queues, main and small, up to maxHits hits in each slot, the note of each
// bucket, and the figures of segments. It changes notes only; its callers store slots.

package cache

import (
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/cuckoo"
)

const (
	smallPercent   = 10 // of the items' bytes
	garbagePercent = 7  // of the items' bytes
	promoteHits    = 2  // from small to main
	patience       = 8  // rounds before items need more hits to stay

	ghostBits = 12
	maxGhosts = 5 // of a bucket
)

// A rule says how many hits an item needs to stay when its segment is emptied, and how many it
// loses. An item that stays by a rule with pays > 0 goes to main.
type rule struct{ needs, pays int }

// victims are the segments that may be emptied next; 0 is none.
type victims struct {
	small, main, dirtiest uint32
	smallBytes, mainBytes int
	garbage, most         int // garbage of all segments, and of dirtiest
}

// admit returns the queue and the hits of a new item. old is the key's previous item, or the zero
// pinned.
func (s *shard) admit(h uint64, old pinned) (main bool, hits int) {
	if old.at == nil {
		return s.remembers(h), 0
	}
	return old.w.main(), old.w.hits()
}

// onHit returns slot w after a hit of its item.
func onHit(w slot) slot {
	if w.hits() == maxHits {
		return w
	}
	return w + oneHit
}

// victim returns the segment to empty and its rule. It returns 0 if no segment is sealed and
// unpinned. After patience rounds, items need more hits to stay in each round.
func (s *shard) victim(round int) (n uint32, r rule) {
	v := s.victims()
	small := v.smallBytes*100 > (v.smallBytes+v.mainBytes)*smallPercent
	more := max(round-patience, 0)
	switch {
	case v.dirtiest != 0 && v.garbage*100 >= (v.smallBytes+v.mainBytes)*garbagePercent:
		return v.dirtiest, rule{needs: more * maxHits, pays: 0}
	case v.small != 0 && (small || v.main == 0):
		return v.small, rule{needs: promoteHits + more, pays: maxHits}
	default:
		return v.main, rule{needs: 1 + more, pays: 1}
	}
}

// victims scans all segments of the shard.
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

// after returns the queue and the hits of an item that stays by the rule.
func (r rule) after(w slot) (main bool, hits int) {
	return w.main() || r.pays > 0, max(w.hits()-r.pays, 0)
}

// evicted notes that the item of slot w was evicted. h is the hash of its key.
func (s *shard) evicted(w slot, h uint64) {
	if !w.main() {
		s.remember(h)
	}
}

// worst returns the slot to evict from a full bucket: one with the fewest hits.
func worst(b *cuckoo.Bucket) *atomic.Uint64 {
	least := &b.Slots[0]
	for j := range b.Slots {
		if slot(b.Slots[j].Load()).hits() < slot(least.Load()).hits() {
			least = &b.Slots[j]
		}
	}
	return least
}

// ghostOf returns the ghost of a key with hash h. It is never 0.
func ghostOf(h uint64) uint64 { return max(h>>(64-ghostBits), 1) }

// remember adds the ghost of a key with hash h. The oldest ghost of the bucket makes room.
func (s *shard) remember(h uint64) {
	b := s.index.First(tagOf(h))
	b.Note = (b.Note<<ghostBits | ghostOf(h)) & (1<<(maxGhosts*ghostBits) - 1)
}

// remembers reports whether the ghost of a key with hash h is there.
func (s *shard) remembers(h uint64) bool {
	for g := s.index.First(tagOf(h)).Note; g != 0; g >>= ghostBits {
		if g&(1<<ghostBits-1) == ghostOf(h) {
			return true
		}
	}
	return false
}
