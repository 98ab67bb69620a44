// Expiry: when the items of a segment expire, so that a sweep looks at few others.
//
//	part      | 0 | 1 | 2 | 3 | 4 | 5 | 6 |   of a segment's bytes
//	first     the offset of the first item that begins there, plus 1
//	due       the second at which the first of its items expires
//
// A due may be too early: its item may be gone, or have another TTL by now. It is never too late.
// When a part is due, expirePart looks at all of its items. Since items of similar TTLs share
// segments, most of them have expired then.

package cache

const (
	parts   = 7
	classes = 5
)

// classTTL has the longest TTL, in seconds, of each class but the last. Class 0 is for items that
// do not expire: their TTL is 0.
var classTTL = [classes - 1]uint32{0, 16, 64, 256}

// classOf returns the class of a TTL in seconds; 0 means that the item does not expire.
func classOf(seconds uint32) int {
	for class, ttl := range classTTL {
		if seconds <= ttl {
			return class
		}
	}
	return classes - 1
}

// classFor returns the class of an item by its TTL. Kept items have higher classes than all others.
func classFor(seconds uint32, kept bool) uint8 {
	class := classOf(seconds)
	if kept {
		class += classes
	}
	return uint8(class)
}

// handled is the expiry of an item that expirePart has dropped or found to be garbage. No item is
// stored with this expiry: see firstSecond.
const handled = 1

// An expiry tells when the items of a segment expire. 0 is no item.
type expiry struct {
	first [parts]uint32
	due   [parts]uint32
}

// partOf returns the part of a segment that an offset is in, and endOf the offset behind a part.
func (g *segment) partOf(offset uint32) int { return int(uint64(offset) * parts / uint64(g.bytes)) }

func (g *segment) endOf(part int) uint32 {
	return uint32((uint64(part+1)*uint64(g.bytes) + parts - 1) / parts)
}

// dueIn returns the earliest due of segment n, or 0 for never.
func (s *shard) dueIn(n uint32) (due uint32) {
	if g := s.segs.at(n); g.state == open || g.state == sealed {
		for _, d := range g.due {
			due = earlier(due, d)
		}
	}
	return due
}

// earlier returns the earlier of two seconds, where 0 is never.
func earlier(a, b uint32) uint32 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// expect notes that there is an item at an offset, and when it expires: a second, a tick, or 0 for
// never. It schedules a sweep.
func (s *shard) expect(g *segment, offset, expires uint32) {
	p := g.partOf(offset)
	if g.first[p] == 0 {
		g.first[p] = offset + 1
	}
	if expires == 0 {
		return
	}
	second := s.c.clock.secondOf(expires)
	g.due[p] = earlier(g.due[p], second)
	s.due = earlier(s.due, second)
	s.c.sweeper.wake(s.due)
}

// expectSooner is expect for an item that a read has made expire sooner.
func (s *shard) expectSooner(r pinned, expires uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, offset := s.segs.split(r.w.place())
	if g := s.segs.at(n); g.state == open || g.state == sealed {
		s.expect(g, offset, expires)
	}
}
