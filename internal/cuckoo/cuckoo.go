// Cuckoo: bucketized cuckoo hashing that grows by linear hashing.
//
//	bucket, 64 B   | slot | slot | slot | slot | slot | slot | slot | note |
//	slot           | tag 27 bits | 37 bits of the caller |        0 is an empty slot
//
// A tag is a part of a key's hash. It has two home buckets, which follow from the tag and the
// number of buckets. A slot is in one home of its tag. If both are full, Insert displaces other
// slots to their other homes. The index grows one bucket at a time and moves part of another
// bucket's slots there; see grow.go. So no key is read.
//
// A note is a word of the caller for each bucket. A new bucket has the note of the one that it
// takes slots from.
//
// # Why readers find each slot
//
// Readers take no lock. A slot that moves is stored in its new bucket before its old one is
// cleared. A reader may still miss it: it may search the new bucket before the move and the old one
// after. So moves is a sequence counter (seqlock): odd while a writer moves slots, or while the
// caller has cleared a slot for a moment. A miss counts only if moves was even before the search
// and is unchanged after it; otherwise the reader searches again. Replacing a slot is one store.
//
// Buckets that Cut frees are read until all readers have finished that began before: the caller
// waits for them.

// Package cuckoo has an index of words by a part of their hashes, which readers search without a
// lock.
//
// It knows no keys: the caller compares them. cuckoo.go has buckets, searches and Insert, grow.go
// adds and removes buckets. Both use only package blocks, which has their memory.
package cuckoo

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/blocks"
	"github.com/freehold-go/freehold/internal/prefetch"
)

const (
	// Slots is the number of slots of a bucket.
	Slots = 7

	// TagBits is the size of a tag, which is the highest bits of a slot.
	TagBits  = 27
	tagMask  = 1<<TagBits - 1
	tagShift = 64 - TagBits

	bucketBytes = 64

	// fullPercent of the slots are used when the index should grow: two homes fill to more.
	fullPercent = 85
)

// A Bucket is the home of slots. Readers load slots; the writer stores them, and has Note alone.
type Bucket struct {
	Slots [Slots]atomic.Uint64
	Note  uint64
}

const _ = -(unsafe.Sizeof(Bucket{}) ^ bucketBytes)

// An Index has slots. The zero value is not ready: see Init. One goroutine at a time may write,
// while others search.
//
// Invariants (Check verifies them):
//   - each slot is in one of its homes
//   - used is the number of slots that are not 0
type Index struct {
	chunks  blocks.List // of buckets
	perBits uint        // a chunk has 1 << perBits buckets
	used    int

	buckets atomic.Uint32 // 0 before the first chunk
	moves   atomic.Uint32
}

// Init makes ix an empty index whose memory comes in chunks of the given bytes, a power of two.
func (ix *Index) Init(chunkBytes int) {
	ix.chunks.Init(chunkBytes)
	ix.perBits = uint(bits.TrailingZeros(uint(chunkBytes / bucketBytes)))
}

// Len returns the number of slots in use.
func (ix *Index) Len() int { return ix.used }

// Buckets returns the number of buckets.
func (ix *Index) Buckets() uint32 { return ix.buckets.Load() }

// Bucket returns bucket i.
func (ix *Index) Bucket(i uint32) *Bucket {
	addr := ix.chunks.At(i>>ix.perBits) + uintptr(i&(1<<ix.perBits-1))*bucketBytes
	return (*Bucket)(*(*unsafe.Pointer)(unsafe.Pointer(&addr)))
}

// tagOf returns the tag of a slot.
func tagOf(w uint64) uint32 { return uint32(w >> tagShift) }

// homes returns both homes of a tag among n buckets.
func homes(tag, n uint32) (one, two uint32) {
	other := uint32(uint64(tag) * 0x9E3779B97F4A7C15 >> 32)
	return linear(tag, n), linear(other&tagMask, n)
}

// Homes returns the homes of a tag; nil if there are no buckets.
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

// Find returns the slot in a home of the tag whose bits of the mask are these, or nil.
//
// Precondition: there are buckets.
func (ix *Index) Find(tag uint32, mask, these uint64) *atomic.Uint64 {
	one, two := ix.Homes(tag)
	for _, b := range [...]*Bucket{one, two} {
		for j := range b.Slots {
			if w := b.Slots[j].Load(); w != 0 && w&mask == these {
				return &b.Slots[j]
			}
		}
	}
	return nil
}

// Has reports whether a slot, whose memory may have been freed, is in a home of the tag.
func (ix *Index) Has(at *atomic.Uint64, tag uint32) bool {
	one, two := ix.Homes(tag)
	return one != nil && (one.has(at) || two.has(at))
}

func (b *Bucket) has(at *atomic.Uint64) bool {
	return uintptr(unsafe.Pointer(at))-uintptr(unsafe.Pointer(b)) < bucketBytes
}

// Moves returns the sequence counter. A search that found nothing is right if the counter was even
// before it, and is the same after it.
func (ix *Index) Moves() uint32 { return ix.moves.Load() }

// BeginMove and EndMove enclose steps of the writer in which a slot is not where readers look.
func (ix *Index) BeginMove() { ix.moves.Add(1) }

// EndMove ends BeginMove.
func (ix *Index) EndMove() { ix.moves.Add(1) }

// Insert adds a slot, and reports false if its homes are full and no other slot can move.
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

// Clear empties all slots, and makes all notes 0.
func (ix *Index) Clear() {
	for i := range ix.buckets.Load() {
		b := ix.Bucket(i)
		b.Note = 0
		for j := range b.Slots {
			b.Slots[j].Store(0)
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

// displace empties a slot in a home of w by moving other slots, and returns it, or nil.
//
// Precondition: moves is odd.
func (ix *Index) displace(w uint64) *atomic.Uint64 {
	const depth = 3
	one, two := homes(tagOf(w), ix.buckets.Load())
	if to := ix.makeRoom(one, depth); to != nil {
		return to
	}
	return ix.makeRoom(two, depth)
}

// makeRoom empties a slot of bucket i by moving its word to the other home, and returns it, or nil.
// If that home is full, makeRoom first makes room there, at most depth buckets deep.
//
// Precondition: moves is odd.
func (ix *Index) makeRoom(i uint32, depth int) *atomic.Uint64 {
	b, n := ix.Bucket(i), ix.buckets.Load()
	for j := range b.Slots {
		w := b.Slots[j].Load()
		other := otherHome(w, i, n)
		if other == i {
			continue
		}
		to := ix.Bucket(other).empty()
		if to == nil && depth > 1 {
			to = ix.makeRoom(other, depth-1)
			w = b.Slots[j].Load() // may have moved too
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

// otherHome returns the home of w that is not bucket i, or i if both are.
func otherHome(w uint64, i, n uint32) uint32 {
	one, two := homes(tagOf(w), n)
	if one == i {
		return two
	}
	return one
}

// room returns how many slots are empty.
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
