// Spares: empty segments of a shard, from the parent and back to it.
//
//	parent --take--> open --> sealed --retire--> limbo --recycle--> spare --release--> parent
//	                  ^                                               |
//	                  +------------------ takeSpare ------------------+
//
// A segment is in limbo while readers have it pinned. Since large items begin segments of other
// sizes, spares have many sizes.

package cache

import (
	"slices"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/blocks"
)

const (
	spareShare    = 8        // a spare may be 1/spareShare larger than an item that is alone
	sparesLooked  = 8        // spares that takeFitting looks at, the newest first
	returnedShare = 20       // other sizes free 1/returnedShare of the bound before a trim
	leastReturned = 64 << 20 // and at least this many bytes
)

// available returns how many bytes new segments can take: spare segments and the unused rest of the
// limit. After the parent has refused memory, the rest does not count.
func (s *shard) available() int {
	if s.refused != nil {
		return s.spare
	}
	return max(s.spare+s.limit-s.used, 0)
}

// takeFitting takes the spare segment with the best score for items of a size. It returns 0 if none
// has the score of f minus restLoss. If the item is to be alone, takeFitting takes a segment of the
// bytes of f or up to 1/spareShare larger.
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

// take returns an empty segment of the given bytes from the parent. It releases spare segments if
// the limit or the parent leaves too little.
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

// countReturned counts the bytes of a released segment whose size is not segmentBytes. The parent
// may keep that memory, and a later segment of another size may not fit there. So after enough
// bytes, unlock trims the parent.
func (s *shard) countReturned(bytes int) {
	c := s.c
	if c.trimmer == nil {
		return
	}
	if n := c.returned.Add(int64(bytes)); n > max(c.bound.now.Load()/returnedShare, leastReturned) && c.returned.CompareAndSwap(n, 0) {
		s.trim = true
	}
}
