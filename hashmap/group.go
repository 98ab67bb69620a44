// Groups: sixteen slots, found by sixteen fingerprints of a byte.
//
//	tags      | tag 0 | tag 1 | ... | tag 15 |
//	slots     | value 0, key 0 | value 1, key 1 | ... |
//	      or  | value 0 | ... | value 15 | key 0 | ... | key 15 |      if that saves much padding
//
//	tag       0: free, else 2 to 255: a fingerprint of 8 bits of the key's hash
//	overflow  bit r: an entry whose tag is r modulo 8 has passed this group
//
// The hash of a key selects a group, its home, and a quarter of the home's slots. An entry takes a
// free slot of the quarter, or else another one of the group. So a search can load the quarter's
// line before it has read the tags. If the home is full, the entry passes it, which sets a bit of
// the overflow byte, and takes a slot in the next group. So a search ends at the first group that
// has no overflow bit for the key.
//
// A set of slots is a word: slot s has the bit 8s if it is below 8, else the bit 8(s-8)+1.

package hashmap

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unsafe"
)

const (
	groupSlots   = 16
	quarterSlots = groupSlots / 4

	eachByte  = 0x0101010101010101
	eachHigh  = 0x80 * eachByte
	allSlots  = eachByte | eachByte<<1
	someSlots = 0x01010101 // the first quarter
)

// Bits of a hash:
//
//	| directory (from the top) ... | quarter (41 - 40) | tag (39 - 32) | group (31 ...) |
const quarterShift = 40

const (
	tagShift   = 32
	groupShift = 32
)

// fingerprint returns the tag of a key with hash h. It is never 1: see matching.
func fingerprint(h uint64) uint8 { return max(uint8(h>>tagShift), 2) }

// overflowBit returns the overflow bit of a tag.
func overflowBit(tag uint8) uint8 { return 1 << (tag & 7) }

// tagWords returns the tags of a group as two words, the first tag in the lowest byte.
func tagWords(tags unsafe.Pointer) (lo, hi uint64) {
	b := (*[groupSlots]byte)(tags)
	return binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])
}

// matching returns the slots whose tag is the given one. Slots above the lowest of each word may be
// false positives, so callers compare keys. Their tags differ from the given one in the last bit
// alone, so they are not free. See "Determine if a word has a byte equal to n" in Anderson's Bit
// Twiddling Hacks.
func matching(lo, hi uint64, tag uint8) uint64 {
	lo ^= uint64(tag) * eachByte
	hi ^= uint64(tag) * eachByte
	return (lo-eachByte)&^lo&eachHigh>>7 | (hi-eachByte)&^hi&eachHigh>>6
}

// full returns the slots that are not free.
func full(lo, hi uint64) uint64 {
	const low = eachHigh - eachByte // seven bits of each byte
	return (lo&low+low|lo)&eachHigh>>7 | (hi&low+low|hi)&eachHigh>>6
}

// passers returns the full slots whose tag has the overflow bit of the given one.
func passers(lo, hi uint64, tag uint8) uint64 {
	const low = 7 * eachByte // the bits of a tag that overflowBit uses
	r := uint64(tag) * eachByte
	lo7, hi7 := eachHigh-(lo^r)&low, eachHigh-(hi^r)&low // bytes of 0x80 where they agree
	return (lo7&eachHigh>>7 | hi7&eachHigh>>6) & full(lo, hi)
}

// first returns the first slot of a set that is not empty.
func first(set uint64) uintptr {
	n := uintptr(bits.TrailingZeros64(set))
	return n/8 + n&1*8
}

// pick returns the slot of free, which is not empty, for a key with hash h: one of the preferred
// quarter, or else of its half, whose lines are neighbours.
func pick(free, h uint64) uintptr {
	q := h >> quarterShift & 3
	if half := free & (eachByte << (q >> 1)); half != 0 {
		free = half
		if quarter := half & quarterSet(q); quarter != 0 {
			free = quarter
		}
	}
	return first(free)
}

// quarterSet returns the slots of quarter q.
func quarterSet(q uint64) uint64 { return someSlots << (q & 1 * 32) << (q >> 1) }

// tagIn returns the address of a slot's tag.
func tagIn(tags unsafe.Pointer, slot uintptr) *uint8 { return (*uint8)(unsafe.Add(tags, slot)) }

// A scheme is how the tables of one map hold entries.
type scheme struct {
	layout
	hash   hasher
	hashAt func(key unsafe.Pointer) uint64 // of the key in a slot
	short  bool                            // keys are plain and isShort, there are no copies, and the map is open
}

// A layout is the arrangement of a group's slots, in bytes.
type layout struct {
	keyBytes, valueBytes uintptr
	keyStep, valueStep   uintptr  // from slot to slot
	keys                 uintptr  // offset of the first key; the first value is at 0
	groupBytes           uintptr  // of all slots
	limits               [8]uint8 // the greatest classes of tables: see table.go
	shared               bool     // tables are of a Shared: see shared_head.go
}

const (
	lineBytes  = 64
	tableBytes = 16 << 10 // the most bytes of a table, unless minGroups need more
	minGroups  = 4        // the least limit of groups; with fewer, the directory would be large

	// maxBytes is the greatest size of a K or V. It lets an int of 32 bits hold the size of a
	// table of minGroups.
	maxBytes = 16 << 20

	_ = uint(math.MaxInt32 - minGroups*groupSlots*(maxBytes+largeBytes+2))
)

// An entry is a value and its key side by side. The value is in front, as Go adds padding behind a
// last field without size.
type entry[K, V any] struct {
	v V
	k K
}

// layoutOf returns the layout of slots for K and V, stored as they are.
func layoutOf[K, V any]() layout {
	var e entry[K, V]
	n, m := unsafe.Sizeof(e.k), unsafe.Sizeof(e.v)
	l := layout{keyBytes: n, valueBytes: m}
	l.keyStep, l.valueStep, l.keys = max(n, 1), m, groupSlots*m
	l.groupBytes = groupSlots * (l.keyStep + m)
	if 8*unsafe.Sizeof(e) <= 9*(n+m) {
		l.keyStep, l.valueStep, l.keys = unsafe.Sizeof(e), unsafe.Sizeof(e), unsafe.Offsetof(e.k)
		l.groupBytes = groupSlots * l.keyStep
	}
	l.groupBytes = max(l.groupBytes, groupSlots) // the compiler loads a byte to check a pointer
	l.setLimits(tableBytes)
	return l
}

// setLimits sets the greatest classes for tables of up to the given size.
func (l *layout) setLimits(bytes uintptr) {
	head := uintptr(headBytes)
	if l.shared {
		head = sharedHeadBytes
		bytes -= min(bytes, tableAlign)
	}
	groups := min(max(bytes/(l.groupBytes+head), minGroups), fineGroups-1)
	for i := range l.limits {
		for most := groups - groups*uintptr(i)/16; uintptr(classes[l.limits[i]+1].groups) <= most; {
			l.limits[i]++
		}
	}
}

// valueIn returns the address of the value beside a slot's key, as value of the layout does. The
// compiler inlines it, and folds all conditions to constants.
//
// Precondition: the map has keys of type K and values of type V, without copies.
func valueIn[K, V any](key unsafe.Pointer, slot uintptr) *V {
	var e entry[K, V]
	if 8*unsafe.Sizeof(e) <= 9*(unsafe.Sizeof(e.k)+unsafe.Sizeof(e.v)) {
		return (*V)(unsafe.Add(key, -int(unsafe.Offsetof(e.k))))
	}
	return (*V)(unsafe.Add(key, slot*unsafe.Sizeof(e.v)-groupSlots*unsafe.Sizeof(e.v)-slot*max(unsafe.Sizeof(e.k), 1)))
}

// keyStepOf returns keyStep of the layout of K and V, as a constant. Its precondition is as for
// valueIn.
func keyStepOf[K, V any]() uintptr {
	var e entry[K, V]
	if 8*unsafe.Sizeof(e) <= 9*(unsafe.Sizeof(e.k)+unsafe.Sizeof(e.v)) {
		return unsafe.Sizeof(e)
	}
	return max(unsafe.Sizeof(e.k), 1)
}
