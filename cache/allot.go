// Allotment: memory for items, from open segments, spare ones and the parent. It reclaims nothing.
//
//	limit of the shard
//	|<----------------------------------------------------------------------->|
//	| index | pages | segments with items | limbo | spares | not taken yet    |
//	                                              |<-- available, reserve -->|
//
// Two segments are a reserve for the copies that reclaim.go makes of surviving items. The limit
// grows and shrinks by loans: see lend.go.

package cache

import (
	"sync/atomic"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/blocks"
)

const (
	reserveSegments = 2
	maxLines        = 8        // of an item that a search prefetches
	returnedShare   = 20       // large items free 1/returnedShare of the bound before a trim
	leastReturned   = 64 << 20 // and at least this many bytes
	pagesShare      = 8        // Resize empties a shard whose pages exceed 1/pagesShare of its share
)

// A want is the memory that a new item needs.
type want struct {
	size    int    // without a version
	seconds uint32 // its TTL
	main    bool   // its queue
	before  uint64 // the item's version must be above it
}

// A spot is the memory of a new item: an offset in segment n.
type spot struct {
	n, offset uint32
	shape     shape // versioned if the position is not above want.before, else 0
}

// allotAvailable returns available memory for an item. It is in the open segment of the item's
// queue and TTL class, or in a segment of its own if the item is large. It has room for a version
// if the position is not above w.before.
func (s *shard) allotAvailable(w *want) (at spot, ok bool) {
	n, bytes := s.segmentFor(w)
	if bytes > 0 {
		if n, ok = s.take(bytes); !ok {
			return spot{}, false
		}
		s.begin(n, w)
	}
	return s.allotIn(n, w), true
}

// allotIn is allotAvailable in segment n, which has room.
func (s *shard) allotIn(n uint32, w *want) spot {
	g := s.segs.at(n)
	at := spot{n, g.used, s.ownVersion(n, g.used, w)}
	s.fill(g, w.size+at.shape.versionBytes())
	return at
}

// segmentFor returns the open segment n with room for an item. If there is none, bytes is the size
// of the segment to begin.
func (s *shard) segmentFor(w *want) (n uint32, bytes int) {
	if s.c.isLarge(w.size) {
		size := w.size
		if w.before == abovePositions { // else the new segment's position is the version
			size += versionBytes
		}
		return 0, freehold.GoodSize(s.c.base.Parent, size)
	}
	if n = *s.openFor(w); n != 0 {
		used := s.segs.at(n).used
		if int(used)+w.size+s.ownVersion(n, used, w).versionBytes() <= s.c.segmentBytes {
			return n, 0
		}
	}
	return 0, s.c.segmentBytes
}

// openFor returns the open segment of an item's queue and TTL class; 0 is none.
func (s *shard) openFor(w *want) *uint32 {
	queue := 0
	if w.main {
		queue = 1
	}
	return &s.open[queue][classOf(w.seconds)]
}

// ownVersion returns versioned if an item at a position needs a version of its own, else 0.
func (s *shard) ownVersion(n, offset uint32, w *want) shape {
	if s.position(n, offset) > w.before {
		return 0
	}
	return versioned
}

// begin makes the empty segment n the newest. If the item is large, the segment is sealed. Else it
// replaces the open segment of the item's queue and TTL class.
func (s *shard) begin(n uint32, w *want) {
	s.age = s.nextAge()
	g := s.segs.at(n)
	g.state, g.main, g.age, g.turn = sealed, w.main, s.age, s.age
	g.expiry.begin(s.c.clock.now(), w.seconds)
	if !s.c.isLarge(w.size) {
		at := s.openFor(w)
		s.seal(*at)
		*at, g.state = n, open
	}
	s.lines.Store(int32(s.linesOfItems()))
}

// linesOfItems returns the cache lines of a mean item, at most maxLines.
func (s *shard) linesOfItems() int {
	taken := s.used - (s.index.Chunks()+len(s.spares))*s.c.segmentBytes
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

// sealAll seals all open segments, and reports whether there were any.
func (s *shard) sealAll() (any bool) {
	for queue := range s.open {
		for class, n := range s.open[queue] {
			s.open[queue][class] = 0
			s.seal(n)
			any = any || n != 0
		}
	}
	return any
}

// available returns the bytes that take can use.
func (s *shard) available() int {
	spare := len(s.spares) * s.c.segmentBytes
	if s.refused != nil {
		return spare
	}
	return max(spare+s.limit-s.used, 0)
}

// take returns an empty segment from available memory.
func (s *shard) take(bytes int) (n uint32, ok bool) {
	if bytes == s.c.segmentBytes && len(s.spares) > 0 {
		n = s.spares[len(s.spares)-1]
		s.spares = s.spares[:len(s.spares)-1]
		return n, true
	}
	more := bytes
	if len(s.segs.unused) == 0 {
		more += pageBytes
	}
	for s.used+more > s.limit && len(s.spares) > 0 {
		s.releaseSpare()
	}
	if s.used+more > s.limit {
		return 0, false
	}
	for {
		n, err := s.fromParent(bytes)
		if err == nil {
			return n, true
		}
		if s.refused = err; len(s.spares) == 0 {
			return 0, false
		}
		s.releaseSpare()
	}
}

// fromParent returns a segment with memory of the parent.
func (s *shard) fromParent(size int) (n uint32, err error) {
	parent, pages := s.c.base.Parent, s.segs.pages.Len()
	n, err = s.segs.takeNumber(parent)
	s.used += (s.segs.pages.Len() - pages) * pageBytes
	if err != nil {
		return 0, err
	}
	block, err := parent.Alloc(size, blocks.LineBytes)
	if err != nil {
		s.segs.unused = append(s.segs.unused, n)
		return 0, err
	}
	s.used += size
	g := s.segs.at(n)
	g.bytes, g.state = uint32(size), spare
	atomic.StoreUintptr(&g.addr, addrOf(block))
	return n, nil
}

// hasOwnSize reports whether the size of a segment is not segmentBytes. Most segments of large
// items have a size of their own. Such a segment is released once it has no item, and is never
// spare.
func (s *shard) hasOwnSize(g *segment) bool { return int(g.bytes) != s.c.segmentBytes }

// retire recycles a segment that no slot refers to. If it is pinned, it goes to limbo.
func (s *shard) retire(n uint32) {
	s.segs.at(n).state = limbo
	if s.segs.isPinned(n) {
		s.limbo = append(s.limbo, n)
		return
	}
	s.recycle(n)
}

// recycle makes a segment without items and pins spare, or releases it if it is large.
func (s *shard) recycle(n uint32) {
	g := s.segs.at(n)
	if s.hasOwnSize(g) {
		s.release(n)
		return
	}
	g.state = spare
	s.reset(g)
	s.spares = append(s.spares, n)
}

// retireLimbo recycles the segments in limbo that are no longer pinned. Then it releases spare
// segments while the shard is above its limit.
func (s *shard) retireLimbo() {
	left := s.limbo
	s.limbo = s.limbo[:0]
	for _, n := range left {
		s.retire(n)
	}
	for s.used > s.limit && len(s.spares) > 0 {
		s.releaseSpare()
	}
}

func (s *shard) releaseSpare() {
	n := s.spares[len(s.spares)-1]
	s.spares = s.spares[:len(s.spares)-1]
	s.release(n)
}

// release returns the memory of a segment to the parent.
func (s *shard) release(n uint32) {
	g := s.segs.at(n)
	s.c.base.Parent.Free(bytesAt(g.addr, int(g.bytes)))
	s.used -= int(g.bytes)
	if s.hasOwnSize(g) {
		s.countReturned(int(g.bytes))
	}
	g.state = unused
	s.reset(g)
	s.segs.unused = append(s.segs.unused, n)
}

// countReturned counts the bytes that a large item freed. The parent may keep that memory, and the
// next large item has another size and often does not fit there. So after enough bytes unlock trims
// the parent.
func (s *shard) countReturned(bytes int) {
	c := s.c
	if c.trimmer == nil {
		return
	}
	if n := c.returned.Add(int64(bytes)); n > max(c.bound.now.Load()/returnedShare, leastReturned) && c.returned.CompareAndSwap(n, 0) {
		s.trim = true
	}
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
		if int(g.bytes) > s.share/hugeShare {
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
