// Index: the cuckoo hash table of a shard grows with the number of items, and shrinks.
//
// It grows once 85% of the slots are in use, or 65% while the shard fills for the first time. A
// sweep shrinks it once less than a quarter are. Its memory comes in chunks of segmentBytes from the
// parent, and is at most half of the shard's limit.

package cache

import (
	"github.com/freehold-go/freehold/internal/cuckoo"
)

// link inserts a slot. While its homes are full, link adds a bucket. If there is no memory for one,
// link evicts the worst item of the first home. It returns false if all items there are kept: then
// the item of the slot is not stored.
func (s *shard) link(w slot) bool {
	for !s.index.Insert(uint64(w)) {
		if s.index.Split() {
			continue
		}
		at := worst(s.index.First(w.tag()), s.isKept)
		if at == nil {
			return false
		}
		n, offset := s.segs.split(slot(at.Load()).place())
		it := s.segs.at(n).item(offset)
		finish(func() { s.evict(at, it, s.c.seed.Bytes(it.key()), Room) }, func() { s.discard(w.place()) })
		s.retireEmpty(n)
	}
	return true
}

// indexBytes returns the bytes of the indexes of memory and disk.
func (s *shard) indexBytes() int { return (s.index.Chunks() + s.tier.chunks()) * s.c.segmentBytes }

// growIndex makes the index large enough for n more slots, if there is memory for that.
func (s *shard) growIndex(n int) {
	for !s.index.Grow(n) {
		if !s.addChunk() {
			return
		}
	}
}

const (
	roomyPercent = 65 // of the slots in use: from here on growAhead adds buckets
	roomyShare   = 16 // while more than 1/roomyShare of the limit is available
)

// growAhead adds a bucket to an index that is not full yet, while much memory is available: a full
// index displaces slots in most Inserts. The index becomes no larger than it will be in a full
// shard with items of the present mean size.
func (s *shard) growAhead() {
	n, buckets := s.index.Len(), int(s.index.Buckets())
	if s.available() <= s.limit/roomyShare || n*100 < buckets*cuckoo.Slots*roomyPercent {
		return
	}
	const fullSlots = cuckoo.Slots * cuckoo.FullPercent / 100.         // of a bucket
	bytes := fullSlots*float64(s.live)/float64(n) + cuckoo.BucketBytes // of a bucket and its items
	filled := s.limit - s.segs.pages.Len()*pageBytes - s.reserve() - openSegments*s.c.segmentBytes
	if float64(buckets)*bytes < float64(filled) && !s.index.Split() && s.addChunk() {
		s.index.Split()
	}
}

// addChunk adds a chunk to the index, and reports whether it could. It may evict entries.
func (s *shard) addChunk() bool {
	size := s.c.segmentBytes
	if 2*(s.index.Chunks()+1)*size > min(s.limit, s.share) {
		return false
	}
	s.refused = nil
	if !s.makeRoom(size) {
		return false
	}
	for s.used+size > s.limit && len(s.spares) > 0 {
		s.releaseSpare()
	}
	for s.used+size <= s.limit {
		if s.refused = s.index.AddChunk(s.c.base.Parent); s.refused == nil {
			s.used += size
			return true
		}
		if len(s.spares) == 0 {
			break
		}
		s.releaseSpare()
	}
	return false
}

// shrinkIndex removes up to most buckets while few slots are in use, and returns unused chunks to
// the parent. It drops items whose slots find no place. Since only Shrunk may drop kept items,
// shrinkIndex does nothing for other Reasons while there are kept items. It returns false
// if it has removed fewer buckets, because then no more of them can go.
func (s *shard) shrinkIndex(most int, why Reason) bool {
	if why != Shrunk && s.hasKept() {
		return false
	}
	before := s.index.Buckets()
	s.index.Shrink(most, func(gone []uint64) {
		forAll(gone, func(w *uint64) {
			if s.tier != nil { // a promoted entry is gone too
				s.tier.forget(s.c.seed.Bytes(s.segs.itemAt(slot(*w).place()).key()))
			}
			s.dropItem(slot(*w).place(), why)
		})
	})
	s.cut(&s.index)
	return int(before-s.index.Buckets()) == most
}

// cut returns the unused chunks of an index to the parent.
func (s *shard) cut(ix *cuckoo.Index) {
	if n := ix.Unused(); n > 0 {
		s.c.readers.Wait() // for readers that search the removed buckets
		ix.Cut(s.c.base.Parent)
		s.used -= n * s.c.segmentBytes
	}
}
