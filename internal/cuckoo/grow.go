// Growth: linear hashing adds and removes buckets one at a time.
//
//	             0      n-high       high        n
//	| already split  | not split  | new buckets |
//
// With n buckets, high is the largest power of two up to n. Bucket n-high is the next to be split.
// Split adds bucket n and moves there each slot of bucket n-high that has a new home. Merge is the
// reverse: it removes the last bucket and moves its slots back.

package cuckoo

import (
	"math/bits"

	"github.com/freehold-go/freehold"
)

// linear maps x to one of n buckets by linear hashing. With k the length of n in bits, that is the
// bucket of x's low k bits, or of its low k-1 bits if that bucket does not exist yet.
func linear(x, n uint32) uint32 {
	high := uint32(1) << (bits.Len32(n) - 1)
	if i := x & (2*high - 1); i < n {
		return i
	}
	return x & (high - 1)
}

// Grow splits buckets until the index is not full, also after n more Inserts. It reports false if
// it needs another chunk first: see AddChunk.
func (ix *Index) Grow(n int) bool {
	for (ix.used+n)*100 > int(ix.buckets.Load())*Slots*FullPercent {
		if !ix.Split() {
			return false
		}
	}
	return true
}

// Chunks returns the number of chunks.
func (ix *Index) Chunks() int { return ix.chunks.Len() }

// AddChunk adds memory for more buckets. Split makes buckets of it.
func (ix *Index) AddChunk(parent freehold.Allocator) error { return ix.chunks.Grow(parent) }

// Split adds one bucket. The first Split adds all buckets of the first chunk. It reports false if
// the chunks have no room for another bucket.
func (ix *Index) Split() bool {
	n := ix.buckets.Load()
	switch {
	case int(n)>>ix.perBits >= ix.chunks.Len():
		return false
	case n == 0:
		ix.buckets.Store(1 << ix.perBits)
		return true
	}
	from := linear(n, n)
	low, high := ix.Bucket(from), ix.Bucket(n)
	high.Note = low.Note
	ix.BeginMove()
	for j := range low.Slots {
		w := low.Slots[j].Load()
		if one, two := homes(tagOf(w), n+1); w == 0 || one == from || two == from {
			high.Slots[j].Store(0)
			continue
		}
		high.Slots[j].Store(w)
		low.Slots[j].Store(0)
	}
	ix.buckets.Store(n + 1)
	ix.EndMove()
	return true
}

// Shrink removes up to most buckets from the end while the slots would fill at most 70% of one
// chunk less. It keeps the first chunk. It calls drop with slots that find no place.
func (ix *Index) Shrink(most int, drop func(gone []uint64)) {
	const fewPercent = 70
	per := 1 << ix.perBits
	for n := int(ix.buckets.Load()); most > 0 && n > per && ix.used*100 <= (n-per)*Slots*fewPercent; n-- {
		most--
		if gone := ix.Merge(); len(gone) > 0 {
			drop(gone)
		}
	}
}

// Merge removes the last bucket and moves its slots to other homes. It returns the slots that found
// no place.
//
// Precondition: a bucket beyond the first chunk exists.
func (ix *Index) Merge() (dropped []uint64) {
	n := ix.buckets.Load() - 1
	last := ix.Bucket(n)
	ix.BeginMove()
	ix.buckets.Store(n)
	for j := range last.Slots {
		w := last.Slots[j].Load()
		if w == 0 {
			continue
		}
		to := ix.empty(w)
		if to == nil {
			to = ix.displace(w)
		}
		if to != nil {
			to.Store(w)
		} else {
			ix.used--
			dropped = append(dropped, w)
		}
		last.Slots[j].Store(0)
	}
	ix.EndMove()
	return dropped
}

// Unused returns the number of chunks without buckets.
func (ix *Index) Unused() int {
	return ix.chunks.Len() - (int(ix.buckets.Load())+1<<ix.perBits-1)>>ix.perBits
}

// Cut returns the unused chunks to the parent.
//
// Precondition: no reader searches them any more.
func (ix *Index) Cut(parent freehold.Allocator) {
	ix.chunks.Cut(parent, ix.chunks.Len()-ix.Unused())
}

// Close returns all chunks to the parent.
func (ix *Index) Close(parent freehold.Allocator) {
	ix.buckets.Store(0)
	ix.used = 0
	ix.Cut(parent)
}
