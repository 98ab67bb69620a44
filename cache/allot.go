// Allotment: memory for items, from open segments, spare ones and the parent. It reclaims nothing.
//
//	limit of the shard
//	|<----------------------------------------------------------------------->|
//	| index | pages | segments with items | limbo | spares | not taken yet    |
//	                                              |<-- available, reserve -->|
//
// Most segments have segmentBytes. An item above 1/fittedShare of that begins a segment of another
// size: see fit. So spares have many sizes, and take gives those that do not fit to the parent.
//
// The bytes of one segment are a reserve for the copies that reclaim.go makes of surviving items.
// The reserve has two segments while there is garbage or sizes vary.
//
// The limit grows and shrinks by loans: see lend.go.

package cache

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/blocks"
)

const (
	reserveSegments = 1
	reserveIfDirty  = 2       // the same, with garbage or if sizes vary
	maxLines        = 8       // of an item that a search prefetches
	fittedShare     = 16      // larger items begin segments of sizes that fit
	runShare        = 8       // such a segment with several items has at most runShare segmentBytes
	mostRunBytes    = 4 << 20 // and at most this many
	wholeScore      = 1 << 10
	aloneBonus      = 16       // of wholeScore
	restLoss        = 48       // of wholeScore
	openSegments    = 3        // of a shard, as scored assumes
	openIfMixed     = 5        // the same, if sizes vary: chosen by TestPayloadOfManySizes
	mostMixed       = 8        // see isMixed
	spareShare      = 8        // a spare may be 1/spareShare larger than an item that is alone
	sparesLooked    = 8        // by takeFitting
	returnedShare   = 20       // other sizes free 1/returnedShare of the bound before a trim
	leastReturned   = 64 << 20 // and at least this many bytes
	pagesShare      = 8        // Resize empties a shard whose pages exceed 1/pagesShare of its share
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

// allotAvailable returns available memory for an item. It is in the open segment of the item's
// queue and TTL class, in the rest of a sealed one, or in a new segment. It has room for a version
// if the position is not above w.before.
func (s *shard) allotAvailable(w *want) (at spot, ok bool) {
	n, f := s.segmentFor(w, s.available())
	if n == 0 {
		return s.allotNew(w, f)
	}
	return s.allotIn(n, w), true
}

// allotNew is allotAvailable in a new segment. It prefers a spare segment that loses few bytes
// more.
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

// segmentFor returns the segment n with room for an item, open or of rests. If there is none, n is
// 0, and f is the segment to begin, of at most the given bytes if the item fits there.
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

// restFor returns the sealed segment of rests with the least room for a large item, of its queue
// and class. It returns 0 if there is none.
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

// leaveRest stores a sealed segment in rests, in place of the one with the least room.
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

// A fitted is a segment to begin. If alone is set, it is for one item. The score is the part of it
// that is not lost, of wholeScore.
type fitted struct {
	bytes int
	alone bool
	score int
}

// fit returns the segment to begin for an item, of at most the given bytes if the item fits there.
// An item larger than segmentBytes may be alone in its segment. Else the segment has at least half
// of segmentBytes, and at most runBytes. If sizes are alike, it has room for a whole number of such
// items. Else it has segmentBytes times 1, 2, 4 or 8, so that it can replace any other segment of
// its size. Of all these fit chooses the one with the highest score. An item that is alone is never
// copied. So it may lose up to aloneBonus more.
func (s *shard) fit(size, most int) (f fitted) {
	c := s.c
	if size <= c.segmentBytes/fittedShare {
		return s.scored(size, c.segmentBytes)
	}
	goodSize := func(bytes int) int { return freehold.GoodSize(c.base.Parent, bytes) }
	f = s.scored(size, goodSize(size))
	if size > c.segmentBytes {
		f.alone, f.score = true, scoreOf(size, f.bytes)+aloneBonus
	}
	most = min(most, c.runBytes())
	if s.isDirty() { // it may be compacted, and its copies must fit into the reserve
		most = min(most, s.reserve())
	}
	try := func(bytes int) {
		if next := s.scored(size, goodSize(bytes)); next.score > f.score && next.bytes <= most {
			f = next
		}
	}
	if s.isMixed() {
		for bytes := c.segmentBytes; bytes <= most; bytes *= 2 {
			if bytes >= size {
				try(bytes)
			}
		}
		return f
	}
	for items := max(c.segmentBytes/2/size, 1) + 1; items*size <= most; items++ {
		try(items * size)
	}
	return f
}

// isDirty reports whether garbage is near the part of all bytes at which segments are compacted.
func (s *shard) isDirty() bool { return (s.filled-s.live)*100 >= s.filled*dirtyPercent }

// scored returns a segment of the given bytes with its score for items of a size. The segment loses
// bytes at its end, and for its descriptor. While it is open, half of it is empty on average. There
// may be openSegments such segments, since others are for the main queue and other TTLs.
func (s *shard) scored(size, bytes int) fitted {
	end, opened := bytes%size, openSegments
	if s.isMixed() {
		end, opened = size/2, openIfMixed
	}
	score := scoreOf(bytes-end, bytes+pageBytes/pageSegments) - scoreOf(bytes*opened/2, s.share)
	return fitted{bytes, false, score}
}

// scoreOf returns part/whole, of wholeScore.
func scoreOf(part, whole int) int { return int(int64(part) * wholeScore / int64(whole)) }

// isMixed reports whether the items that begin segments have many sizes. mixes notes one such item.
func (s *shard) isMixed() bool { return s.mixed >= mostMixed/2 }

func (s *shard) mixes(size int) {
	if size <= s.c.segmentBytes/fittedShare {
		return
	}
	if last := s.last; size > last+last/fittedShare || size < last-last/fittedShare {
		s.mixed = min(s.mixed+1, mostMixed)
	} else {
		s.mixed = max(s.mixed-1, 0)
	}
	s.last = size
}

// openFor returns the open segment of an item's size, queue and class; 0 is none.
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

// sealAll seals all open segments. It leaves out those of kept items unless kept is set. It reports
// whether there were any.
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

// available returns the bytes that take can use.
func (s *shard) available() int {
	if s.refused != nil {
		return s.spare
	}
	return max(s.spare+s.limit-s.used, 0)
}

// takeFitting takes the spare segment with the best score for items of a size. It returns 0 if that
// is below the score of f by more than restLoss. If the item is to be alone, takeFitting takes a
// segment of its size or up to 1/spareShare larger.
func (s *shard) takeFitting(size int, f fitted) (n uint32) {
	best, least := -1, f.score-restLoss
	for i := len(s.spares) - 1; i >= max(len(s.spares)-sparesLooked, 0); i-- {
		bytes := int(s.segs.at(s.spares[i]).bytes)
		switch {
		case f.alone && bytes >= f.bytes && bytes <= f.bytes+f.bytes/spareShare:
			return s.takeSpare(i)
		case bytes == f.bytes:
			return s.takeSpare(i)
		case f.alone || bytes < size || bytes > s.c.runBytes():
		default:
			if score := s.scored(size, bytes).score; score >= least {
				best, least = i, score+1
			}
		}
	}
	if best < 0 {
		return 0
	}
	return s.takeSpare(best)
}

// take returns an empty segment of the given bytes from the parent, and gives back spare segments
// if that is necessary.
func (s *shard) take(bytes int) (n uint32, ok bool) {
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

// retire recycles a segment that no slot refers to. If it is pinned, it goes to limbo.
func (s *shard) retire(n uint32) {
	s.forgetRest(n)
	s.segs.at(n).state = limbo
	if s.segs.isPinned(n) {
		s.limbo = append(s.limbo, n)
		return
	}
	s.recycle(n)
}

// recycle makes a segment without items and pins spare.
func (s *shard) recycle(n uint32) {
	g := s.segs.at(n)
	g.state = spare
	s.reset(g)
	s.spares = append(s.spares, n)
	s.spare += int(g.bytes)
}

// takeSpare removes spare i from the list.
func (s *shard) takeSpare(i int) (n uint32) {
	n = s.spares[i]
	s.spares = slices.Delete(s.spares, i, i+1)
	s.spare -= int(s.segs.at(n).bytes)
	return n
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

// releaseSpare returns the memory of the spare segment that has been spare for longest.
func (s *shard) releaseSpare() { s.release(s.takeSpare(0)) }

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

// countReturned counts the bytes of a segment of another size than most. The parent may keep that
// memory, and the next such segment has another size and often does not fit there. So after enough
// bytes unlock trims the parent.
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
