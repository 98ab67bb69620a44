// Policy: S3-FIFO by segments, with sizes.
//
//	new key --> | small queue: a tenth | -- 2 or more hits --> | main queue | <--+
//	               |                                              |     |        |
//	               | 0 or 1 hit                            0 hits |     +--------+
//	               v                                              v     1 or more hits, one less
//	            evicted, leaves a ghost                        evicted, leaves a main ghost
//	               |
//	               +-- the key is set again --> main queue, at most 1 of 4 to 8 new keys
//
// A queue is a list of sealed segments, ordered by turn. The first is emptied: items that stay are
// copied to the open segment of their queue and TTL class. While at least garbagePercent of the
// bytes are dead, the segment with the most garbage is emptied instead, and all its live items
// stay. Segments whose copies fit into the available memory come first. Segments of kept items are
// in no queue: they are emptied only for their garbage.
//
// New keys go to main while roomPercent of the shard is free, besides a segment. So a loop over
// more keys than fit hits the keys that came first.
//
// At most 1 of 4 to 8 new keys goes to main because its ghost is found. Without this limit, each
// key of such a loop would replace an item that is about to be read. In a loop, keys with a main
// ghost return more often than others with a ghost. The more often they do, the lower the limit. A
// main ghost is only counted: its key goes to small.
//
// Large items need more hits. The weight of an item is the logarithm to base 4 of its size divided
// by the mean size of new items, rounded to -3 to 2. It is added to the hits that a promotion
// needs. In main, a positive weight is added to the hits that an item needs to stay, unless
// Options.Favor is ByteHits. An item of negative weight w enters main with -w hits.
//
// Another policy is another file, in place of this one and ghost.go, with these functions:
//
//	admit      the queue and the hits of a new item
//	rankOf     both, for a snapshot
//	onHit      the slot of an item after a read
//	victim     the segment to empty, and the rule by which its items stay
//	stays      whether an item stays by the rule, its queue and its hits
//	evicted    notes an item that does not stay
//	worst      the item that goes if a bucket of the index is full
//	warmth     the order in which items would go, for Hottest and Coldest
//
// A policy can use two queues, main and small, up to maxHits hits in each slot, the note of each
// bucket, the figures of segments, and a state for each shard. It changes notes and its state only;
// its callers store slots.

package cache

import (
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/cuckoo"
)

const (
	smallPercent   = 10 // of the items' bytes
	garbagePercent = 7  // of the items' bytes
	dirtyPercent   = 5  // of the items' bytes: from here on, new segments fit the reserve
	roomPercent    = 5  // of the shard's limit
	promoteHits    = 2  // from small to main
	patience       = 8  // rounds before items need more hits to stay

	ghostBits    = 12
	mainGhost    = 1                     // a bit of a ghost
	maxGhosts    = 5                     // of a bucket
	ghostPercent = 120                   // of the number of items
	ghostShift   = maxGhosts * ghostBits // of the count of old ghosts
	allGhosts    = 1<<ghostShift - 1

	ghostPrice = 4   // the lowest price: see price
	mostPrice  = 8   // the highest price
	mostCredit = 200 // new keys

	keptRank = 1 << (hitsBits + 1) // the bit of a rank that says that the item is kept

	meanItems = 2048 // new items whose mean size is measured, a power of two
)

// A policy is the state of a shard's policy. The lock of the shard guards it.
type policy struct {
	credit   int    // new keys, minus the price of each ghost that went to main; up to mostCredit
	items    uint64 // new items, older ones counted less
	sum      uint64 // of their sizes
	mean     uint64 // of their sizes, when items was a power of two
	hand     uint32 // the next bucket whose ghosts age
	progress int    // of the hand on its way to the next bucket
	small    recent
	main     recent
}

// recent has the latest evictions from a queue, and how many of their ghosts have returned.
type recent struct{ evicted, returned int }

// share returns the share of ghosts that have returned, plus a hundredth, so that a few returns
// change little.
func (q recent) share() float64 { return float64(q.returned)/float64(max(q.evicted, 1)) + .01 }

// price returns the number of new keys for each ghost that goes to main. It grows with the share of
// main ghosts that return, relative to the share of the other ghosts.
func (p *policy) price() int {
	price := ghostPrice * p.main.share() / p.small.share()
	return int(min(max(price, ghostPrice), mostPrice))
}

// A rule says which items stay when a segment is emptied.
type rule struct {
	needs    int  // hits that an item needs to stay
	pays     int  // hits that an item that stays loses
	promotes bool // an item that stays goes to main
	weighs   bool // weights count
	leaves   bool // an item without memory for its copy stays where it is
}

// victims are the segments that may be emptied next; 0 is none.
type victims struct {
	small, main, dirtiest uint32
	smallBytes, mainBytes int
	keptBytes             int
	garbage, most         int  // garbage of all segments, and of dirtiest
	fits                  bool // there is memory for the copies of dirtiest
}

// admit returns the queue and the hits of the new item of a write. old is the key's previous item,
// or the zero pinned.
func (s *shard) admit(w *write, old pinned, size int) (main bool, hits int) {
	switch {
	case old.at != nil:
		return old.w.main(), old.w.hits()
	case w.restored != nil:
		return s.readmit(w.rank, size)
	}
	p := &s.policy
	p.measure(size)
	p.credit = min(p.credit+1, mostCredit)
	switch {
	case (s.available()-s.begun)*100 > s.limit*roomPercent:
	case s.recall(w.h) && p.credit >= p.price():
		p.credit -= p.price()
	default:
		return false, 0
	}
	return true, p.bonus(size)
}

// rankOf returns the queue and the hits of slot w, and whether its item is kept, for a snapshot.
func rankOf(w slot, isKept bool) uint16 {
	rank := uint16(w & (mainBit | hitsMask) >> placeBits)
	if isKept {
		rank |= keptRank
	}
	return rank
}

// readmit returns the queue and the hits of an item of a snapshot.
func (s *shard) readmit(rank uint16, size int) (main bool, hits int) {
	s.policy.measure(size)
	w := slot(rank) << placeBits
	return w.main(), w.hits()
}

// measure counts a new item in the mean size.
func (p *policy) measure(size int) {
	p.items++
	p.sum += uint64(size)
	if p.items&(p.items-1) != 0 && p.items < meanItems { // at 1, 2, 4 and so on, and at the end
		return
	}
	p.mean = p.sum / p.items
	if p.items == meanItems {
		p.items, p.sum = meanItems/2, p.sum/2
	}
}

// weight returns the weight of an item, rounded, from -3 to 2.
func (p *policy) weight(size int) int {
	n, mean := uint64(size), p.mean
	switch {
	case n >= 8*mean:
		return 2
	case n >= 2*mean:
		return 1
	case 2*n > mean:
		return 0
	case 8*n > mean:
		return -1
	case 32*n > mean:
		return -2
	}
	return -3
}

// bonus returns the hits that an item gets when it goes to main.
func (p *policy) bonus(size int) int { return max(-p.weight(size), 0) }

// onHit returns slot w after a hit of its item.
func onHit(w slot) slot {
	if w.hits() == maxHits {
		return w
	}
	return w + oneHit
}

// victim returns the segment to empty and its rule. It returns 0 if no segment is sealed and
// unpinned. After patience rounds, items need more hits to stay in each round. Unless keptToo is
// set, victim returns no segment of kept items.
func (s *shard) victim(round int, keptToo bool) (n uint32, r rule) {
	v := s.victims()
	small := v.smallBytes*100 > (v.smallBytes+v.mainBytes)*smallPercent
	more := max(round-patience, 0)
	switch {
	case v.dirtiest != 0 && (keptToo || !s.segs.at(v.dirtiest).isKept()) && v.garbage*100 >= (v.smallBytes+v.mainBytes+v.keptBytes)*garbagePercent:
		if s.segs.at(v.dirtiest).isKept() {
			return v.dirtiest, rule{leaves: true}
		}
		return v.dirtiest, rule{needs: more * maxHits}
	case v.small != 0 && (small || v.main == 0):
		return v.small, rule{needs: promoteHits + more, promotes: true, weighs: true}
	default:
		return v.main, rule{needs: 1 + more, pays: 1, weighs: true}
	}
}

// victims scans all segments of the shard.
func (s *shard) victims() (v victims) {
	oldestSmall, oldestMain := ^uint64(0), ^uint64(0)
	available := s.available()
	s.segs.each(func(n uint32, g *segment) {
		if g.state != open && g.state != sealed {
			return
		}
		garbage := g.garbage()
		if g.isKept() && int(g.live) > available {
			garbage = 0 // there is no memory for copies
		}
		v.garbage += garbage
		switch {
		case g.isKept():
			v.keptBytes += int(g.used)
		case g.main:
			v.mainBytes += int(g.used)
		default:
			v.smallBytes += int(g.used)
		}
		if g.state == open {
			return
		}
		fits := int(g.live) <= available && garbage*100 >= int(g.used)*garbagePercent
		if (fits && !v.fits || fits == v.fits && garbage > v.most) && !s.segs.isPinned(n) {
			v.dirtiest, v.most, v.fits = n, garbage, fits
		}
		switch {
		case g.isKept():
		case g.main && g.turn < oldestMain && !s.segs.isPinned(n):
			v.main, oldestMain = n, g.turn
		case !g.main && g.turn < oldestSmall && !s.segs.isPinned(n):
			v.small, oldestSmall = n, g.turn
		}
	})
	return v
}

// stays reports whether the item of slot w stays by a rule, and returns its queue and its hits if
// it does.
func (s *shard) stays(r rule, w slot, size int) (main bool, hits int, ok bool) {
	weight := 0
	if r.weighs {
		weight = s.policy.weight(size)
	}
	if r.promotes {
		return true, max(-weight, 0), w.hits() >= r.needs+weight
	}
	if s.c.options.Favor == ByteHits {
		weight = 0
	}
	more := max(weight, 0)
	return w.main(), max(w.hits()-r.pays-more, 0), w.hits() >= r.needs+more
}

// evicted notes that the item of slot w was evicted. h is the hash of its key.
func (s *shard) evicted(w slot, h uint64) {
	p := &s.policy
	if w.main() {
		p.main.evicted++
	} else {
		p.small.evicted++
	}
	if p.main.evicted+p.small.evicted > s.index.Len() { // older evictions count less
		for _, q := range []*recent{&p.main, &p.small} {
			q.evicted, q.returned = q.evicted/2, q.returned/2
		}
	}
	s.addGhost(h, w.main())
	s.ageGhosts()
}

// worst returns the slot to evict from a full bucket: one with the fewest hits, and not of a kept
// item. It returns nil if all are kept.
func worst(b *cuckoo.Bucket, isKept func(w slot) bool) (least *atomic.Uint64) {
	for j := range b.Slots {
		w := slot(b.Slots[j].Load())
		if (least == nil || w.hits() < slot(least.Load()).hits()) && !isKept(w) {
			least = &b.Slots[j]
		}
	}
	return least
}

// warmths is the number of values of warmth.
const warmths = maxHits + promoteHits + 1

// warmth returns a number that is higher for items that would stay longer, by queue and hits. An
// item in small with promoteHits has the same warmth as one in main without hits.
func warmth(w slot) int {
	if w.main() {
		return w.hits() + promoteHits
	}
	return w.hits()
}
