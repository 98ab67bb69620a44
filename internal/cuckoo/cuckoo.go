// Cuckoo: bucketized cuckoo hashing that grows by linear hashing.
//
//	bucket, 64 B   | slot | slot | slot | slot | slot | slot | slot | note |
//	slot           | tag 27 bits | 37 bits of the caller |        0 is an empty slot
//
// A tag is a part of a key's hash. The tag and the number of buckets determine its two home
// buckets. A slot is in one home of its tag. If both homes are full, Insert displaces other slots
// to their other homes. The index grows by one bucket at a time and moves slots of one old bucket
// there: see grow.go. Neither reads a key, since the tag is in the slot.
//
// A note is a word for the caller's use in each bucket. A new bucket gets a copy of the note of the
// bucket that it takes slots from.
//
// # Why readers miss no slot
//
// Readers take no lock. The writer stores a slot in its new bucket before it clears the old place.
// A reader may still miss the slot: it may search the new bucket before the move and the old one
// after. So moves is a sequence counter (seqlock). It is odd while the writer moves slots, and
// while the caller has cleared a slot for a moment. A miss is valid only if moves was even before
// the search and is unchanged after it. Otherwise the reader searches again. Replacing a slot is
// one store.
//
// Readers may still search buckets that Shrink has removed. So the caller waits for them between
// Shrink and Cut, which frees the memory.

// Package cuckoo is an index by bucketized cuckoo hashing that readers search without a lock. It
// finds words by their tags, which are parts of keys' hashes.
//
// It knows no keys: the caller compares them. cuckoo.go has buckets and Insert. search.go compares
// tags. grow.go adds and removes buckets. A blocks.List has their memory.
package cuckoo

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/blocks"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/prefetch"
	"github.com/freehold-go/freehold/internal/seam"
)

const (
	// Slots is the number of slots of a bucket.
	Slots = 7

	// TagBits is the size of a tag, which is the highest bits of a slot.
	TagBits  = 27
	tagMask  = 1<<TagBits - 1
	tagShift = 64 - TagBits

	// BucketBytes is the size of a Bucket.
	BucketBytes = 64

	// FullPercent is the share of used slots at which the index should grow. Two homes of 7 slots
	// can fill to more.
	FullPercent = 85
)

// A Bucket has slots and a note. Readers load slots, and may change bits of the caller by
// compare-and-swap. Only the writer uses Note.
type Bucket struct {
	Slots [Slots]atomic.Uint64
	Note  uint64
}

const _ = -(unsafe.Sizeof(Bucket{}) ^ BucketBytes)

// An Index is a hash table of slots. Call Init before use. One goroutine at a time may write while
// others search.
//
// Invariants (Check verifies them):
//   - each slot is in one of its homes
//   - used is the number of slots that are not 0
type Index struct {
	chunks  blocks.List // of buckets
	perBits uint        // a chunk has 1 << perBits buckets
	used    int
	readers *pin.Holders
	seam    *seam.Seam

	buckets atomic.Uint32 // 0 before the first chunk
	moves   atomic.Uint32
}

// Init makes ix an empty index whose memory comes in chunks of the given bytes, a power of two.
// readers are those that the caller waits for before Cut.
func (ix *Index) Init(chunkBytes int, readers *pin.Holders, seam *seam.Seam) {
	ix.readers, ix.seam = readers, seam
	ix.chunks.Init(chunkBytes)
	ix.perBits = uint(bits.TrailingZeros(uint(chunkBytes / BucketBytes)))
}

// Len returns the number of slots in use.
func (ix *Index) Len() int { return ix.used }

// Buckets returns the number of buckets.
func (ix *Index) Buckets() uint32 { return ix.buckets.Load() }

// Bucket returns bucket i.
func (ix *Index) Bucket(i uint32) *Bucket {
	addr := ix.chunks.At(i>>ix.perBits) + uintptr(i&(1<<ix.perBits-1))*BucketBytes
	return (*Bucket)(*(*unsafe.Pointer)(unsafe.Pointer(&addr)))
}

// tagOf returns the tag of a slot.
func tagOf(w uint64) uint32 { return uint32(w >> tagShift) }

// homes returns both homes of a tag among n buckets.
func homes(tag, n uint32) (one, two uint32) {
	other := uint32(uint64(tag) * 0x9E3779B97F4A7C15 >> 32)
	return linear(tag, n), linear(other&tagMask, n)
}

// Homes returns the homes of a tag, or nil if there are no buckets.
func (ix *Index) Homes(tag uint32) (one, two *Bucket) {
	n := ix.buckets.Load()
	if n == 0 {
		return nil, nil
	}
	i, j := homes(tag, n)
	return ix.Bucket(i), ix.Bucket(j)
}

// First returns the first home of a tag.
//
// Precondition: there are buckets.
func (ix *Index) First(tag uint32) *Bucket { return ix.Bucket(linear(tag, ix.buckets.Load())) }

// Prefetch prefetches the homes of a tag, if there are buckets.
func (ix *Index) Prefetch(tag uint32) {
	if one, two := ix.Homes(tag); one != nil {
		one.Prefetch()
		two.Prefetch()
	}
}

// Prefetch prefetches the bucket.
func (b *Bucket) Prefetch() { prefetch.Lines(uintptr(unsafe.Pointer(b)), 1) }

// Find returns the slot w with the tag and with w&mask == these, or nil.
//
// Precondition: the caller is among the readers, or is the writer.
func (ix *Index) Find(tag uint32, mask, these uint64) *atomic.Uint64 {
	found := ix.Search(tag)
	for at := ix.Next(&found); at != nil; at = ix.Next(&found) {
		if w := at.Load(); w != 0 && w&mask == these {
			return at
		}
	}
	return nil
}

// Has reports whether the address at is in a home of the tag. It does not read the slot there,
// whose memory may have been freed.
func (ix *Index) Has(at *atomic.Uint64, tag uint32) bool {
	one, two := ix.Homes(tag)
	return one != nil && (one.has(at) || two.has(at))
}

func (b *Bucket) has(at *atomic.Uint64) bool {
	return uintptr(unsafe.Pointer(at))-uintptr(unsafe.Pointer(b)) < BucketBytes
}

// Moves returns the sequence counter. A search that found nothing is valid if the counter was even
// before it and is unchanged after it.
func (ix *Index) Moves() uint32 { return ix.moves.Load() }

// BeginMove makes the sequence counter odd. Until EndMove, the writer may hide slots from readers
// for a moment.
func (ix *Index) BeginMove() { ix.moves.Add(1) }

// EndMove makes the sequence counter even again.
func (ix *Index) EndMove() { ix.moves.Add(1) }

// Insert adds a slot. It reports false if both homes are full and no slot there can be displaced.
func (ix *Index) Insert(w uint64) bool {
	to := ix.empty(w)
	if to == nil {
		ix.BeginMove()
		to = ix.displace(w)
		ix.EndMove()
	}
	if to == nil {
		return false
	}
	ix.used++
	to.Store(w)
	return true
}

// Remove empties a slot.
func (ix *Index) Remove(at *atomic.Uint64) {
	at.Store(0)
	ix.used--
}

// Clear empties all slots and sets all notes to 0. It does not write to what is 0 already, so that
// pages without memory of the system stay as they are.
func (ix *Index) Clear() {
	for i := range ix.buckets.Load() {
		b := ix.Bucket(i)
		if b.Note != 0 {
			b.Note = 0
		}
		for j := range b.Slots {
			if b.Slots[j].Load() != 0 {
				b.Slots[j].Store(0)
			}
		}
	}
	ix.used = 0
}

// empty returns an empty slot in the emptier home of w, or nil.
func (ix *Index) empty(w uint64) *atomic.Uint64 {
	first, second := ix.Homes(tagOf(w))
	if second.room() > first.room() {
		return second.empty()
	}
	return first.empty()
}

// displace moves other slots until a slot in a home of w is empty. It returns that slot, or nil if
// it found none.
//
// Precondition: moves is odd.
func (ix *Index) displace(w uint64) *atomic.Uint64 {
	const depth = 3
	one, two := homes(tagOf(w), ix.buckets.Load())
	if to := ix.displaceFrom(one, depth); to != nil {
		return to
	}
	return ix.displaceFrom(two, depth)
}

// displaceFrom empties a slot of bucket i by moving its word to its other home. It returns the
// slot, or nil. If the other home is full, it first empties a slot there, at most depth buckets
// deep.
//
// Precondition: moves is odd.
func (ix *Index) displaceFrom(i uint32, depth int) *atomic.Uint64 {
	b, n := ix.Bucket(i), ix.buckets.Load()
	for j := range b.Slots {
		w := b.Slots[j].Load()
		other := otherHome(w, i, n)
		if other == i {
			continue
		}
		to := ix.Bucket(other).empty()
		if to == nil && depth > 1 {
			to = ix.displaceFrom(other, depth-1)
			w = b.Slots[j].Load() // the call above may have moved it
		}
		if to == nil {
			continue
		}
		if w != 0 && otherHome(w, i, n) == other {
			to.Store(w)
			b.Slots[j].Store(0)
		}
		if b.Slots[j].Load() == 0 {
			return &b.Slots[j]
		}
	}
	return nil
}

// otherHome returns the home of w that is not bucket i, or i if both homes are bucket i.
func otherHome(w uint64, i, n uint32) uint32 {
	one, two := homes(tagOf(w), n)
	if one == i {
		return two
	}
	return one
}

// room returns the number of empty slots.
func (b *Bucket) room() (n int) {
	for j := range b.Slots {
		if b.Slots[j].Load() == 0 {
			n++
		}
	}
	return n
}

// empty returns an empty slot, or nil.
func (b *Bucket) empty() *atomic.Uint64 {
	for j := range b.Slots {
		if b.Slots[j].Load() == 0 {
			return &b.Slots[j]
		}
	}
	return nil
}

// Check panics if an invariant is violated, for tests.
func (ix *Index) Check() {
	used, n := 0, ix.buckets.Load()
	for i := range n {
		b := ix.Bucket(i)
		for j := range b.Slots {
			w := b.Slots[j].Load()
			if w == 0 {
				continue
			}
			used++
			if one, two := homes(tagOf(w), n); i != one && i != two {
				panic("cuckoo: a slot in a bucket that is no home of its tag")
			}
		}
	}
	if used != ix.used {
		panic("cuckoo: the number of used slots is wrong")
	}
}
