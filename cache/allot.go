// Allotment: memory for items, from open segments, spare ones and the parent.
//
//	limit of the shard
//	|<----------------------------------------------------------------------->|
//	| index | pages | segments with items | limbo | spares | not taken yet    |
//	                                              |<-- available, reserve -->|
//
// Two segments are a reserve for the copies that reclaim.go makes of surviving items.

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
	pagesShare      = 8        // Resize drops pages beyond 1/pagesShare of a share
)

// allot returns the place of a new item of size bytes. The place is in the open segment of its
// queue and TTL class, or in a segment of its own if the item is large. If the position there is
// not above the version before, own is versioned, and allot adds versionBytes. With copying, allot
// uses available memory only and reclaims nothing.
func (s *shard) allot(size int, seconds uint32, main, copying bool, before uint64) (n, offset uint32, own shape, ok bool) {
	if s.c.isLarge(size) {
		if before == highestBefore {
			own = versioned
			size += versionBytes
		}
		if n, ok = s.acquire(size, copying); ok {
			s.begin(n, seconds, main, sealed)
			s.fill(s.segs.at(n), size)
		}
		return n, 0, own, ok
	}
	queue := 0
	if main {
		queue = 1
	}
	at := &s.open[queue][classOf(seconds)]
	for !s.fits(*at, size, before) {
		if n, ok = s.acquire(s.c.segmentBytes, copying); !ok {
			return 0, 0, 0, false
		}
		if s.fits(*at, size, before) { // copies have opened a segment
			s.recycle(n)
			break
		}
		s.seal(*at)
		*at = n
		s.begin(n, seconds, main, open)
	}
	g := s.segs.at(*at)
	offset = g.used
	own = s.shapeAt(*at, offset, before)
	s.fill(g, size+own.versionBytes())
	return *at, offset, own, true
}

// fits reports whether segment n is open and has room for an item, with a version if it needs one.
func (s *shard) fits(n uint32, size int, before uint64) bool {
	if n == 0 {
		return false
	}
	used := s.segs.at(n).used
	return int(used)+size+s.shapeAt(n, used, before).versionBytes() <= s.c.segmentBytes
}

// begin makes segment n, which is empty, the newest.
func (s *shard) begin(n, seconds uint32, main bool, as state) {
	s.age = s.nextAge()
	g := s.segs.at(n)
	g.state, g.main, g.age, g.turn = as, main, s.age, s.age
	g.expiry.begin(s.c.clock.now(), seconds)
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

// acquire returns an empty segment of the given bytes.
func (s *shard) acquire(bytes int, copying bool) (n uint32, ok bool) {
	if bytes != s.c.segmentBytes {
		bytes = freehold.GoodSize(s.c.base.Parent, bytes)
	}
	if copying {
		return s.take(bytes)
	}
	s.refused = nil
	for range 2 { // again if the parent refuses
		if !s.makeRoom(bytes) {
			return 0, false
		}
		if n, ok = s.take(bytes); ok {
			return n, true
		}
	}
	return 0, false
}

// makeRoom reclaims segments until the given bytes and the reserve are available. It reports
// whether at least the bytes are.
func (s *shard) makeRoom(bytes int) bool {
	s.retireLimbo()
	s.rebalance()
	reserve := reserveSegments * s.c.segmentBytes
	for round := 0; s.available() < bytes+reserve; round++ {
		if !s.reclaim(round, Room) {
			return s.available() >= bytes
		}
	}
	return true
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
	n, err = s.segs.number(parent)
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
	if int(g.bytes) != s.c.segmentBytes {
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
	if int(g.bytes) != s.c.segmentBytes {
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
