// Fit: the size of the segment to begin for an item.
//
// Most segments have segmentBytes. An item above 1/fittedShare of that begins a segment of another
// size. Each candidate size has a score: the part of the segment that such items fill. If the sizes
// of items vary, the candidates are segmentBytes times 1, 2, 4 and 8, so that one segment can
// replace another.

package cache

import "github.com/freehold-go/freehold"

const (
	fittedShare  = 16      // items above 1/fittedShare of segmentBytes begin segments that fit
	runShare     = 8       // a segment with several items has at most runShare segmentBytes
	mostRunBytes = 4 << 20 // and at most this many
	wholeScore   = 1 << 10
	aloneBonus   = 16 // of wholeScore
	restLoss     = 48 // of wholeScore: memory that is at hand is used even if it loses so much more
	openSegments = 3  // of a shard, as scored assumes
	openIfMixed  = 5  // in place of openSegments, if sizes vary: chosen by TestPayloadOfManySizes
	mostMixed    = 8  // see isMixed
)

// A fitted is a segment to begin.
type fitted struct {
	bytes int
	alone bool // it is for one item
	score int  // the part that is not lost, of wholeScore
}

// fit returns the segment to begin for an item of the given size: the candidate with the highest
// score. It has at most the given bytes, unless the item alone needs more.
//
// An item larger than segmentBytes may be alone in its segment. Such an item is never copied, so its
// segment may lose aloneBonus more. Segments for several items have from half of segmentBytes to
// runBytes, with room for a whole number of such items.
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
	if s.isDirty() { // the segment may be compacted, and its copies must fit into the reserve
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

// isDirty reports whether the garbage is near garbagePercent.
func (s *shard) isDirty() bool { return (s.filled-s.live)*100 >= s.filled*dirtyPercent }

// scored returns a segment of the given bytes with its score for items of a size. The segment loses
// the bytes at its end and of its descriptor. While it is open, half of it is empty on average. The
// shard may have openSegments such segments, for both queues and several TTLs.
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

// isMixed reports whether the items that begin segments vary in size.
func (s *shard) isMixed() bool { return s.mixed >= mostMixed/2 }

// mixes notes the size of an item that begins a segment, if it is above 1/fittedShare of
// segmentBytes.
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
