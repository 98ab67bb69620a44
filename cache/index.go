// Index: a shard's hash table, bucketized cuckoo hashing that grows by linear hashing.
//
//	bucket, 64 B   | slot | slot | slot | slot | slot | slot | slot | ghosts |
//	ghosts         | 0 | ghost 12 bits | ... five in all, the newest last |
//
// Each key has two home buckets, computed from its tag and the number of buckets. Its slot is in
// one of them. If both are full, insert displaces other slots to their other homes.
// The index grows one bucket at a time and moves part of another bucket's slots there; see grow.go.
//
// A ghost is a piece of the hash of a key that was evicted from the small queue; see reclaim.go.
//
// # Why readers find each item
//
// Readers take no lock. A slot that moves is stored in its new bucket before its old one is
// cleared. A reader may still miss it: it may search the new bucket before the move and the old one
// after. So moves is a sequence counter (seqlock): odd while a writer moves slots, or while a slot
// is briefly 0 (rewrite.go). A miss counts only if moves was even before the search and is
// unchanged after it; otherwise the reader searches again. Replacing a slot is one store.

package cache

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/prefetch"
)

const (
	bucketSlots = 7
	bucketBytes = 64
	maxGhosts   = 5
	// The index grows when this percentage of its slots is used: two homes fill to more.
	fullPercent = 85
)

type bucket struct {
	slots  [bucketSlots]atomic.Uint64
	ghosts uint64
}

// An index is written under its shard's lock.
//
// Invariants (check verifies them):
//   - each slot is in one of its homes
//   - used is the number of slots that are not 0
type index struct {
	chunks  blocks // of buckets
	perBits uint   // a chunk has 1 << perBits buckets
	used    int

	buckets atomic.Uint32 // 0 before the first chunk
	moves   atomic.Uint32
}

func (ix *index) init(chunkBytes int) {
	ix.chunks.init(chunkBytes)
	ix.perBits = uint(bits.TrailingZeros(uint(chunkBytes / bucketBytes)))
}

// bucket returns bucket i.
func (ix *index) bucket(i uint32) *bucket {
	addr := ix.chunks.at(i>>ix.perBits) + uintptr(i&(1<<ix.perBits-1))*bucketBytes
	return (*bucket)(pointer(addr))
}

// linear maps x to one of n buckets by linear hashing: its low k bits, or k-1 if that bucket does
// not exist yet.
func linear(x, n uint32) uint32 {
	high := uint32(1) << (bits.Len32(n) - 1)
	if i := x & (2*high - 1); i < n {
		return i
	}
	return x & (high - 1)
}

// homes returns both homes of a tag among n buckets.
func homes(tag, n uint32) (one, two uint32) {
	other := uint32(uint64(tag) * 0x9E3779B97F4A7C15 >> 32)
	return linear(tag, n), linear(other&tagMask, n)
}

// bucketsOf returns the homes of a tag; nil if there are no buckets.
func (ix *index) bucketsOf(tag uint32) (one, two *bucket) {
	n := ix.buckets.Load()
	if n == 0 {
		return nil, nil
	}
	i, j := homes(tag, n)
	return ix.bucket(i), ix.bucket(j)
}

// prefetch prefetches the homes of a tag, if the index has buckets.
func (ix *index) prefetch(tag uint32) {
	if one, two := ix.bucketsOf(tag); one != nil {
		one.prefetch()
		two.prefetch()
	}
}

func (b *bucket) prefetch() { prefetch.Lines(uintptr(unsafe.Pointer(b)), 1) }

// slotAt returns the slot in a home of the tag whose item is at the place, or nil.
func (ix *index) slotAt(tag uint32, at place) *atomic.Uint64 {
	one, two := ix.bucketsOf(tag)
	for _, b := range [...]*bucket{one, two} {
		for j := range b.slots {
			if w := slot(b.slots[j].Load()); w != 0 && w.place() == at {
				return &b.slots[j]
			}
		}
	}
	return nil
}

// has reports whether a slot, whose memory may have been freed, is in a home of the tag.
func (ix *index) has(at *atomic.Uint64, tag uint32) bool {
	one, two := ix.bucketsOf(tag)
	return one != nil && (one.has(at) || two.has(at))
}

func (b *bucket) has(at *atomic.Uint64) bool {
	return uintptr(unsafe.Pointer(at))-uintptr(unsafe.Pointer(b)) < bucketBytes
}

// insert adds a slot, and reports false if its homes are full and no other slot can move.
func (ix *index) insert(w slot) bool {
	to := ix.free(w)
	if to == nil {
		ix.moves.Add(1)
		to = ix.displace(w)
		ix.moves.Add(1)
	}
	if to == nil {
		return false
	}
	ix.used++
	to.Store(uint64(w))
	return true
}

// free returns an empty slot in the emptier home of w, or nil.
func (ix *index) free(w slot) *atomic.Uint64 {
	first, second := ix.bucketsOf(w.tag())
	if second.empty() > first.empty() {
		return second.free()
	}
	return first.free()
}

// displace empties a slot in a home of w by moving other slots, and returns it, or nil.
//
// Precondition: moves is odd.
func (ix *index) displace(w slot) *atomic.Uint64 {
	const depth = 3
	one, two := homes(w.tag(), ix.buckets.Load())
	if to := ix.makeRoom(one, depth); to != nil {
		return to
	}
	return ix.makeRoom(two, depth)
}

// makeRoom empties a slot of bucket i by moving its word to the other home, and returns it, or nil.
// If that home is full, makeRoom first makes room there, at most depth buckets deep.
//
// Precondition: moves is odd.
func (ix *index) makeRoom(i uint32, depth int) *atomic.Uint64 {
	b, n := ix.bucket(i), ix.buckets.Load()
	for j := range b.slots {
		w := slot(b.slots[j].Load())
		other := otherHome(w, i, n)
		if other == i {
			continue
		}
		to := ix.bucket(other).free()
		if to == nil && depth > 1 {
			to = ix.makeRoom(other, depth-1)
			w = slot(b.slots[j].Load()) // may have moved too
		}
		if to == nil {
			continue
		}
		if w != 0 && otherHome(w, i, n) == other {
			to.Store(uint64(w))
			b.slots[j].Store(0)
		}
		if b.slots[j].Load() == 0 {
			return &b.slots[j]
		}
	}
	return nil
}

// otherHome returns the home of w that is not bucket i, or i if both are.
func otherHome(w slot, i, n uint32) uint32 {
	one, two := homes(w.tag(), n)
	if one == i {
		return two
	}
	return one
}

// empty returns how many slots are empty.
func (b *bucket) empty() (n int) {
	for j := range b.slots {
		if b.slots[j].Load() == 0 {
			n++
		}
	}
	return n
}

// free returns an empty slot, or nil.
func (b *bucket) free() *atomic.Uint64 {
	for j := range b.slots {
		if b.slots[j].Load() == 0 {
			return &b.slots[j]
		}
	}
	return nil
}

// remember adds the ghost of a key with that hash.
func (ix *index) remember(h uint64) {
	one, _ := homes(tagOf(h), ix.buckets.Load())
	b := ix.bucket(one)
	b.ghosts = (b.ghosts<<ghostBits | ghostOf(h)) & (1<<(maxGhosts*ghostBits) - 1)
}

// remembers reports whether there is a ghost of a key with that hash.
func (ix *index) remembers(h uint64) bool {
	one, _ := homes(tagOf(h), ix.buckets.Load())
	for g := ix.bucket(one).ghosts; g != 0; g >>= ghostBits {
		if g&(1<<ghostBits-1) == ghostOf(h) {
			return true
		}
	}
	return false
}
