// Allotment: memory for items, from open segments, spare ones and the parent, without reclaiming.
//
//	limit of the shard
//	|<----------------------------------------------------------------------->|
//	| index | pages | segments with items | limbo | spares | not taken yet    |
//	                                              |<-- available, reserve -->|
//
// The reserve is the bytes of one segment, for the copies that reclaim.go makes of surviving items.
// It has two segments while there is garbage or sizes vary. The limit grows and shrinks by loans:
// see lend.go. fit.go chooses the sizes of segments, and spare.go takes and returns their memory.

package cache

import (
	"math"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/blocks"
)

const (
	reserveSegments = 1
	reserveIfDirty  = 2 // in place of reserveSegments, with garbage or if sizes vary
	maxLines        = 8 // cache lines of an item that a search prefetches
)

// A want is the memory that a new item needs.
type want struct {
	size    int    // without a version
	seconds uint32 // its TTL
	main    bool   // its queue
	kept    bool   // it is not evicted
	before  uint64 // the item's version must be above it
}

// most returns the size of the item in a new segment.
func (w *want) most() int {
	if w.before == abovePositions { // else the segment's position is the version
		return w.size + versionBytes
	}
	return w.size
}

// A spot is the memory of a new item: an offset in segment n.
type spot struct {
	n, offset uint32
	shape     shape // versioned if the position is not above want.before, else 0
}

// allotAvailable returns memory for an item: in the open segment of the item's queue and TTL class,
// in the rest of a sealed one, or in a new segment. The memory has room for a version if the
// position is not above w.before.
func (s *shard) allotAvailable(w *want) (at spot, ok bool) {
	n, f := s.segmentFor(w, s.available())
	if n == 0 {
		return s.allotNew(w, f)
	}
	return s.allotIn(n, w), true
}

// allotNew is allotAvailable in a new segment: a spare one that fits about as well as f, or else f.
func (s *shard) allotNew(w *want, f fitted) (at spot, ok bool) {
	n := s.takeFitting(w.most(), f)
	if n == 0 {
		if n, ok = s.take(f.bytes); !ok {
			return spot{}, false
		}
	}
	s.begin(n, w, f.alone)
	return s.allotIn(n, w), true
}

// allotIn is allotAvailable in segment n, which has room.
func (s *shard) allotIn(n uint32, w *want) spot {
	g := s.segs.at(n)
	at := spot{n, g.used, s.ownVersion(n, g.used, w)}
	s.fill(g, w.size+at.shape.versionBytes())
	return at
}

// segmentFor returns the segment with room for an item, open or of rests. If there is none, n is 0,
// and f is the segment to begin: see fit.
func (s *shard) segmentFor(w *want, most int) (n uint32, f fitted) {
	if n = *s.openFor(w); n != 0 && s.hasRoom(n, w) {
		return n, fitted{}
	}
	if n = s.restFor(w); n != 0 {
		return n, fitted{}
	}
	return 0, s.fit(w.most(), most)
}

// hasRoom reports whether segment n has room for an item.
func (s *shard) hasRoom(n uint32, w *want) bool {
	g := s.segs.at(n)
	return int(g.used)+w.size+s.ownVersion(n, g.used, w).versionBytes() <= int(g.bytes)
}

// restFor returns a segment of rests with room for a large item, of the item's queue and class:
// the one with the least room. It returns 0 if there is none.
func (s *shard) restFor(w *want) (best uint32) {
	if !s.c.isLarge(w.size) {
		return 0
	}
	class, least := classFor(w.seconds, w.kept), math.MaxInt
	for _, n := range s.rests {
		rest := s.restOf(n)
		if rest == 0 || rest >= least || !s.hasRoom(n, w) {
			continue
		}
		if g := s.segs.at(n); g.main == w.main && g.class == class {
			best, least = n, rest
		}
	}
	return best
}

// restOf returns the unused bytes of segment n. Segment 0 is none.
func (s *shard) restOf(n uint32) int {
	if n == 0 {
		return 0
	}
	g := s.segs.at(n)
	return int(g.bytes - g.used)
}

// leaveRest stores a sealed segment in rests if it has more room than one there, which it replaces.
func (s *shard) leaveRest(n uint32) {
	if n == 0 || s.segs.at(n).state != sealed {
		return
	}
	least := &s.rests[0]
	for i := range s.rests {
		if s.restOf(s.rests[i]) < s.restOf(*least) {
			least = &s.rests[i]
		}
	}
	if s.restOf(n) > s.restOf(*least) {
		*least = n
	}
}

// forgetRest removes a segment from rests.
func (s *shard) forgetRest(n uint32) {
	for i := range s.rests {
		if s.rests[i] == n {
			s.rests[i] = 0
		}
	}
}

// openFor returns where the open segment of an item's size, queue and class is stored.
func (s *shard) openFor(w *want) *uint32 {
	row := 0
	if w.main {
		row++
	}
	if s.c.isLarge(w.size) {
		row += 2
	}
	return &s.open[row][classFor(w.seconds, w.kept)]
}

// ownVersion returns versioned if an item at a position needs a version of its own, else 0.
func (s *shard) ownVersion(n, offset uint32, w *want) shape {
	if s.position(n, offset) > w.before {
		return 0
	}
	return versioned
}

// begin makes the empty segment n the newest. If the item is alone, the segment is sealed. Else it
// replaces the open segment of the item's size, queue and TTL class.
func (s *shard) begin(n uint32, w *want, alone bool) {
	g := s.segs.at(n)
	s.mixes(w.size)
	g.age = s.nextAge()
	s.age = g.age
	g.state, g.main, g.alone, g.turn = sealed, w.main, alone, s.age
	g.class, g.expiry = classFor(w.seconds, w.kept), expiry{}
	if !alone {
		s.begun = int(g.bytes)
		s.age += s.agesOf(s.begun) - uint64(len(s.c.shards))
		at := s.openFor(w)
		if s.seal(*at); s.c.isLarge(w.size) {
			s.leaveRest(*at)
		}
		*at, g.state = n, open
	}
	s.lines.Store(int32(s.linesOfItems()))
}

// linesOfItems returns the cache lines of a mean item, at most maxLines.
func (s *shard) linesOfItems() int {
	taken := s.used - s.indexBytes() - s.spare
	return min(taken/max(s.index.Len(), 1)/blocks.LineBytes+1, maxLines)
}

// seal seals an open segment, and retires it if it has no live items. Segment 0 is none.
func (s *shard) seal(n uint32) {
	if n == 0 {
		return
	}
	g := s.segs.at(n)
	if g.state = sealed; g.live == 0 {
		s.retire(n)
	}
}

// sealAll seals all open segments, and reports whether there were any. It leaves segments of kept
// items open unless kept is set.
func (s *shard) sealAll(kept bool) (any bool) {
	for queue := range s.open {
		for class, n := range s.open[queue] {
			if class >= classes && !kept {
				continue
			}
			s.open[queue][class] = 0
			s.seal(n)
			any = any || n != 0
		}
	}
	return any
}

// rebalance returns borrowed bytes to unlent when their huge entries are gone. If the shard itself
// has lent bytes, rebalance takes them back from unlent.
func (s *shard) rebalance() {
	unlent := &s.c.bound.unlent
	if s.limit < s.share {
		s.limit += takeUpTo(unlent, s.share-s.limit)
	}
	if s.limit <= s.share {
		return
	}
	own := s.share + s.pending
	s.segs.each(func(_ uint32, g *segment) {
		if int(g.bytes) > s.share/hugeShare && g.state != spare {
			own += int(g.bytes)
		}
	})
	for s.used > own && len(s.spares) > 0 {
		s.releaseSpare()
	}
	if more := s.limit - max(own, s.used); more > 0 {
		s.limit -= more
		unlent.Add(int64(more))
	}
}

// takeUpTo subtracts n from a counter, or less if the counter is lower. It returns the difference.
func takeUpTo(counter *atomic.Int64, n int) int {
	for {
		has := counter.Load()
		take := min(has, int64(n))
		if take <= 0 || counter.CompareAndSwap(has, has-take) {
			return int(max(take, 0))
		}
	}
}
