// Tier: a shard's index of its entries on disk. Package internal/disk stores their records.
//
//	         demote: append a record, insert its disk slot, remove the item's slot
//	memory ------------------------------------------------------------------------> disk
//	       <------------------------------------------------------------------------
//	         fetch: read the record without the lock, validate it under the lock, promote
//
//	disk slot     | tag 27 | hit 1 | class 4 | place 32 |        0 is an empty slot
//
// In this file a slot is a disk slot, unless it is an item's. The bit hit is set once a read other
// than Peek has found the record. The class bounds the size of the record, so that one read of the
// disk gets all of it. The record has the whole key. The tag and the number of the index's part have
// at most 32 bits of the key's hash.
//
// Slots change only under the shard's lock. A call that writes or deletes a key changes memory and
// forgets the key's slots under one lock, so an older value never comes back. Slots with equal hash
// bits are forgotten together, since only a read of the disk could tell them apart.
//
// A promoted entry keeps its disk slot: memory and disk then have the same entry, and evicting the
// item writes nothing. See fetch.go.

package cache

import (
	"encoding/binary"
	"slices"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/cuckoo"
	"github.com/freehold-go/freehold/internal/disk"
)

// A diskSlot is a slot of a tier's index.
type diskSlot uint64

const (
	diskPlaceBits          = 32
	diskPlace     diskSlot = 1<<diskPlaceBits - 1
	classBits              = 4
	diskHit       diskSlot = 1 << (diskPlaceBits + classBits)
	diskTagShift           = diskPlaceBits + classBits + 1

	maxTierParts   = 32
	partItems      = 1 << 20 // the most items of a part, if records have partValue bytes
	partValue      = 1 << 10
	partSegments   = 32 // with several parts, a shard has at least partSegments for each
	tierShare      = 2  // both indexes take at most 1/tierShare of the shard
	mostTries      = 8  // loads of a key, before validate forgets slots that keep changing
	mostCandidates = 4  // slots with one tag that a load reads

	learnItems  = 1024 // items that were never read, after which declines decides anew
	sampleShift = 62   // a quarter of the keys has 0 in the bits of the hash from here on
)

// The fields of a diskSlot fill 64 bits.
const _ = uint(64-cuckoo.TagBits-diskTagShift) + uint(diskTagShift+cuckoo.TagBits-64)

// recordBytes has the largest size of a record in each class. Most are an eighth above a power of
// two, which leaves room for key and head.
var recordBytes = [1 << classBits]int{
	320, 576, 832, 1152, 1664, 2304, 3328, 4608, 6656, 9216, 18 << 10, 36 << 10, 72 << 10, 144 << 10, 288 << 10, 1 << 20,
}

func diskSlotOf(tag uint32, at disk.Place, bytes int) diskSlot {
	class, _ := slices.BinarySearch(recordBytes[:], bytes)
	return diskSlot(tag)<<diskTagShift | diskSlot(class)<<diskPlaceBits | diskSlot(at)
}

func (w diskSlot) tag() uint32       { return uint32(w >> diskTagShift) }
func (w diskSlot) place() disk.Place { return disk.Place(w & diskPlace) }
func (w diskSlot) bytes() int        { return recordBytes[w>>diskPlaceBits&(1<<classBits-1)] }

// A tier is a shard's part of the disk tier. The shard's lock guards it, but readers search parts
// without the lock.
type tier struct {
	s      *shard
	store  *disk.Store
	shape  shape          // of images
	parts  []cuckoo.Index // a power of two, by the bits of a hash above the tag
	newest disk.Place     // of the last record, or disk.Store.Newest of the last clean stop
	wants  *cuckoo.Index  // the part that got no memory for a chunk, or nil

	hits, written, rejected, dropped, evicted, errors uint64 // see DiskStats

	// Of declines, which decides from time to time:
	full     bool   // the file is full: a region was reclaimed
	samples  bool   // only a quarter of the items that were never read is written
	offered  int    // items that were never read, since the last decision
	hitsThen uint64 // hits at the last decision
}

// newTier returns the tier of a shard for a file of the given size. It has no store yet.
func newTier(s *shard, bytes int64) *tier {
	n := 1
	for items := bytes / partValue / int64(len(s.c.shards)); n < maxTierParts && int64(n)*partItems < items &&
		2*n*partSegments*s.c.segmentBytes <= s.limit; {
		n *= 2
	}
	t := &tier{s: s, shape: flags8 | versioned | s.c.shapeOf(0), parts: make([]cuckoo.Index, n)}
	for i := range t.parts {
		t.parts[i].Init(s.c.segmentBytes, &s.c.readers, &s.c.seam)
	}
	return t
}

// part returns the part of the index for a key with hash h.
func (t *tier) part(h uint64) *cuckoo.Index {
	return &t.parts[h>>cuckoo.TagBits&uint64(len(t.parts)-1)]
}

// len returns the number of slots.
func (t *tier) len() (n int) {
	for i := range t.parts {
		n += t.parts[i].Len()
	}
	return n
}

// chunks returns the number of chunks of the index.
func (t *tier) chunks() (n int) {
	if t != nil {
		for i := range t.parts {
			n += t.parts[i].Chunks()
		}
	}
	return n
}

// slots returns the slots with the tag of h, at most mostCandidates of them, without a lock.
func (t *tier) slots(h uint64) (words [mostCandidates]diskSlot, n int) {
	ix := t.part(h)
	found := ix.Search(tagOf(h))
	if !found.Found() {
		return words, 0
	}
	me := t.s.c.readers.Enter() // until Leave, no bucket is freed
	for at := ix.Next(&found); at != nil && n < len(words); at = ix.Next(&found) {
		if w := diskSlot(at.Load()); w != 0 && w.tag() == tagOf(h) {
			words[n] = w
			n++
		}
	}
	t.s.c.readers.Leave(me)
	return words, n
}

// find returns the slot with the tag of h and a place, or nil.
func (t *tier) find(h uint64, at disk.Place) *atomic.Uint64 {
	return t.part(h).Find(tagOf(h), uint64(diskPlace), uint64(at))
}

// has reports whether there is a slot with the tag of h.
func (t *tier) has(h uint64) bool { return t.part(h).Find(tagOf(h), 0, 0) != nil }

// forget removes all slots with the tag of h.
func (t *tier) forget(h uint64) {
	ix := t.part(h)
	for at := ix.Find(tagOf(h), 0, 0); at != nil; at = ix.Find(tagOf(h), 0, 0) {
		ix.BeginMove()
		ix.Remove(at)
		ix.EndMove()
	}
}

// each calls f with each slot of a part of the index, and with the slot's tag as a hash. It removes
// the slots for which f returns false.
func (t *tier) each(ix *cuckoo.Index, f func(h uint64, w diskSlot) bool) {
	for i := range ix.Buckets() {
		b := ix.Bucket(i)
		for j := range b.Slots {
			if w := diskSlot(b.Slots[j].Load()); w != 0 && !f(uint64(w.tag()), w) {
				ix.Remove(&b.Slots[j])
			}
		}
	}
}

// insert adds a slot. If the index is full and gets no memory, insert removes the oldest slot of
// the two home buckets.
//
// Precondition: the part of h has buckets.
func (t *tier) insert(h uint64, w diskSlot) {
	ix := t.part(h)
	for !ix.Grow(1) && t.addChunk(ix) {
	}
	// In an index that cannot grow, Insert would displace many slots before it fails.
	if ix.Grow(1) && ix.Insert(uint64(w)) {
		return
	}
	if at := t.oldest(ix, tagOf(h)); at != nil {
		ix.Remove(at)
		t.evicted++
	}
	ix.Insert(uint64(w)) // a home bucket has room now
}

// oldest returns the slot with the oldest record in the two home buckets of a tag, or nil if they
// are empty. The age of a record is the distance from its place to newest, modulo 1<<32.
func (t *tier) oldest(ix *cuckoo.Index, tag uint32) (oldest *atomic.Uint64) {
	one, two := ix.Homes(tag)
	most := disk.Place(0)
	for _, b := range [...]*cuckoo.Bucket{one, two} {
		for j := range b.Slots {
			if w := diskSlot(b.Slots[j].Load()); w != 0 {
				if age := t.newest - w.place(); oldest == nil || age > most {
					oldest, most = &b.Slots[j], age
				}
			}
		}
	}
	return oldest
}

// addChunk adds a chunk to a part of the index if memory is available. It reclaims no memory, since
// demote calls it while reclaiming. If there is no memory, it sets wants, and the next makeRoom
// reclaims memory for the chunk.
func (t *tier) addChunk(ix *cuckoo.Index) bool {
	s := t.s
	size := s.c.segmentBytes
	if tierShare*(s.index.Chunks()+t.chunks()+1)*size > min(s.limit, s.share) {
		return false
	}
	for s.used+size > s.limit && len(s.spares) > 0 {
		s.releaseSpare()
	}
	if s.used+size > s.limit || ix.AddChunk(s.c.base.Parent) != nil {
		t.wants = ix
		return false
	}
	s.used += size
	return true
}

// addWanted adds a chunk to the part in wants, if the part still needs one.
func (t *tier) addWanted() {
	ix := t.wants
	t.wants = nil
	if !ix.Grow(1) {
		t.addChunk(ix)
	}
}

// hasBuckets reports whether a part of the index has buckets, and tries to add the first.
func (t *tier) hasBuckets(ix *cuckoo.Index) bool {
	return ix.Buckets() > 0 || ix.Split() || t.addChunk(ix) && ix.Split()
}

// shrink frees chunks of the index until both indexes take at most their share of limit. Each part
// keeps its first chunk. Slots that have no room then are removed.
func (t *tier) shrink(limit int) {
	if t == nil {
		return
	}
	s := t.s
	for most := limit / tierShare / s.c.segmentBytes; s.index.Chunks()+t.chunks() > most; {
		ix := &t.parts[0]
		for i := range t.parts {
			if t.parts[i].Chunks() > ix.Chunks() {
				ix = &t.parts[i]
			}
		}
		if ix.Chunks() <= 1 {
			return
		}
		for ix.Unused() == 0 {
			t.evicted += uint64(len(ix.Merge()))
		}
		s.cut(ix)
	}
}

// compact frees chunks of nearly empty parts of the index. If the store is off, it empties the
// index first. Each part keeps its first chunk.
func (t *tier) compact() {
	if t == nil {
		return
	}
	if t.store.IsOff() {
		t.errors += uint64(t.len())
		t.clear()
	}
	for i := range t.parts {
		ix := &t.parts[i]
		for ix.Len() < int(ix.Buckets())*cuckoo.Slots/sparseShare {
			before := ix.Buckets()
			ix.Shrink(sweepBuckets, func(gone []uint64) { t.evicted += uint64(len(gone)) })
			t.s.cut(ix)
			if before-ix.Buckets() < sweepBuckets {
				break
			}
			t.s.pause()
		}
	}
}

// clear removes all slots.
func (t *tier) clear() {
	if t != nil {
		for i := range t.parts {
			t.parts[i].Clear()
		}
	}
}

// close frees the memory of the index.
func (t *tier) close() {
	if t != nil {
		for i := range t.parts {
			t.parts[i].Close(t.s.c.base.Parent)
		}
	}
}

// evict demotes the item of a slot, or drops it if that fails.
func (s *shard) evict(at *atomic.Uint64, it *item, h uint64, why Reason) {
	if s.tier == nil || !s.tier.demote(at, it, h) {
		s.drop(at, why)
	}
}

// demote removes the item of a slot if its entry is on disk or write succeeds, and reports whether
// it has. It does not call OnEvict, since the cache still has the entry.
func (t *tier) demote(at *atomic.Uint64, it *item, h uint64) bool {
	s, w := t.s, slot(at.Load())
	n, _ := s.segs.split(w.place())
	g := s.segs.at(n)
	// If the item's record has left the disk, and another key has its hash bits there, the item is
	// lost.
	isThere := it.shape&promoted != 0 && t.has(h) && !t.store.IsOff()
	if !isThere && !(t.admits(it, g, w, h) && t.write(it, w, h)) {
		return false
	}
	s.raiseFloor(s.version(w, it))
	s.index.Remove(at)
	s.uncount(g, it)
	return true
}

// admits reports whether the item of slot w, in segment g, may be written. Items with an expiry in
// ticks are not: records store seconds, and such items live for less than a minute.
func (t *tier) admits(it *item, g *segment, w slot, h uint64) bool {
	switch {
	case it.shape.isAbsent() || g.isKept():
		return false
	case it.expires.Load()&inTicks != 0, int(it.valueBytes) < t.s.c.options.Disk.MinValue,
		disk.Size(int(it.keyBytes), int(it.valueBytes)+t.extraBytes()) > disk.MostBytes,
		!w.main() && w.hits() == 0 && t.declines(h):
		t.rejected++
		return false
	}
	return true
}

// declines reports whether an item that was never read is kept off a full disk, where it would
// overwrite a record too soon. declines decides after each learnItems of these items. If the disk
// had fewer hits meanwhile than half of them, declines admits a fixed quarter of the keys. If the
// disk had no hits at all, the cache is being filled, and declines admits all keys.
func (t *tier) declines(h uint64) bool {
	if !t.full {
		return false
	}
	if t.offered++; t.offered == learnItems {
		hits := t.hits - t.hitsThen
		t.samples = hits > 0 && hits < learnItems/2
		t.offered, t.hitsThen = 0, t.hits
	}
	return t.samples && h>>sampleShift != 0
}

// write appends a record of the item of slot w, and inserts a disk slot. It reports whether it has.
func (t *tier) write(it *item, w slot, h uint64) bool {
	if !t.hasBuckets(t.part(h)) {
		t.dropped++
		return false
	}
	c := t.s.c
	r := disk.Record{Hash: h, Key: it.key(), Value: it.value()}
	r.Flags, r.Version, r.Expires = it.flags(), t.s.version(w, it), c.clock.fixed(it.expires.Load())
	if n := t.extraBytes(); n > 0 {
		room := t.s.room[:0]
		if at := it.access(); at != nil {
			a := at.Load()
			room = binary.LittleEndian.AppendUint32(room, c.clock.fixed(a&^wasRead))
			room = append(room, byte(a/wasRead))
		}
		if at := it.due(); at != nil {
			room = binary.LittleEndian.AppendUint32(room, c.clock.fixed(at.Load()))
		}
		r.Value = append(room, r.Value...)
		if cap(r.Value) <= mostRoom {
			t.s.room = r.Value
		}
	}
	at, ok := t.store.Append(&r)
	if !ok {
		t.dropped++
		if t.store.IsOff() && t.len() > 0 {
			t.s.wake() // the sweep empties the index
		}
		return false
	}
	t.newest = at
	t.insert(h, diskSlotOf(tagOf(h), at, disk.Size(len(r.Key), len(r.Value))))
	t.written++
	return true
}

// extraBytes returns the size of an item's access and due, which a record has in front of its value.
func (t *tier) extraBytes() (n int) {
	if t.shape&accessed != 0 {
		n += accessBytes + 1
	}
	if t.shape&refreshed != 0 {
		n += dueBytes
	}
	return n
}
