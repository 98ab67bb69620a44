// Groups: up to seven entries, found by one word of tags.
//
//	group     | tags 8 B | 7 keys | pad | 7 values | pad |
//	tags      | tag 0 | tag 1 | ... | tag 6 | overflow |      from the lowest byte up
//
//	tag       0: free, else 0x80 | 7 bits of the key's hash
//	overflow  bit r: an entry whose tag is r modulo 8 has passed this group
//
// The hash of a key selects a group, its home. If the home is full, the entry passes it, which sets
// a bit of the overflow byte, and takes a slot in the next group. So a search ends at the first
// group without an overflow bit for the key.
//
// Tags are read and written as one word, so the byte order of the machine does not matter. Tags and
// keys come first: with keys of 8 bytes they are in one line, and a search reads no other line
// before it has found the key.

package hashmap

import (
	"math"
	"math/bits"
	"unsafe"
)

const (
	slotsPerGroup = 7
	tagBytes      = 8

	eachTag  = 0x0001010101010101 // 1 in each tag, 0 in the overflow byte
	tagHighs = 0x0080808080808080 // the high bit of each tag

	overflowShift = 8 * slotsPerGroup
)

// Bits of a hash:
//
//	| directory (from the top) ... | 63 - 39 | tag (38 - 32) | group in the table (31 ...) |
const (
	tagShift   = 32
	groupShift = 32
)

// tagOf returns the tag of a key with hash h.
func tagOf(h uint64) uint64 { return h>>tagShift&0x7F | 0x80 }

// passBit returns the overflow bit of tag, in a word of tags.
func passBit(tag uint64) uint64 { return 1 << (overflowShift + tag&7) }

// matchTag returns the high bit of each tag in w that equals tag. Bits above the lowest one may be
// false positives, so callers compare keys. See "Determine if a word has a byte equal to n" in
// Anderson's Bit Twiddling Hacks.
func matchTag(w, tag uint64) uint64 {
	x := w ^ tag*eachTag
	return (x - eachTag) &^ x & tagHighs
}

// matchFree returns the high bit of each tag in w that is free.
func matchFree(w uint64) uint64 { return ^w & tagHighs }

// matchFull returns the high bit of each tag in w that is not free.
func matchFull(w uint64) uint64 { return w & tagHighs }

// slotOf returns the slot of the lowest bit of match, which is not 0.
func slotOf(match uint64) uintptr { return uintptr(bits.TrailingZeros64(match)) / 8 }

// setTag returns w with the tag of a slot set.
func setTag(w uint64, slot uintptr, tag uint64) uint64 {
	return w&^(0xFF<<(8*slot&63)) | tag<<(8*slot&63)
}

// A layout is the arrangement of a group, in bytes.
type layout struct {
	keyBytes, valueBytes uintptr // of a slot
	keys, values         uintptr // offset of the first one; 0 if the type has no size
	stride               uintptr // from group to group
	maxGroups            uintptr // of a table, a power of two; more only if hashes collide
}

const (
	lineBytes  = 64
	tableBytes = 16 << 10 // the most bytes of a table, unless minGroups need more
	minGroups  = 8        // the least maxGroups; with fewer groups, the directory would be large

	// maxBytes is the greatest size of a K or V. It lets an int of 32 bits hold the size of a
	// table of minGroups.
	maxBytes = 16 << 20

	_ = uint(math.MaxInt32 - minGroups*(tagBytes+slotsPerGroup*2*maxBytes)*9/8)
)

// layoutOf returns the layout of groups for K and V, stored as they are.
//
// A type without size is at the beginning of the group. A load of it still touches a byte, to check
// the pointer, and there may be no memory behind the last key.
func layoutOf[K, V any]() layout {
	var k K
	var v V
	l := layout{keyBytes: unsafe.Sizeof(k), valueBytes: unsafe.Sizeof(v), stride: strideOf[K, V]()}
	l.keys, l.values = tagBytes*some[K](), valuesOf[K, V]()*some[V]()
	l.maxGroups = minGroups
	for 2*l.maxGroups*l.stride <= tableBytes {
		l.maxGroups *= 2
	}
	return l
}

// some returns 1 if a T has a size, else 0. The compiler folds it to a constant.
func some[T any]() uintptr {
	var v T
	return min(unsafe.Sizeof(v), 1)
}

// valuesOf returns the offset of the first value, if values have a size. The compiler folds it and
// strideOf to constants.
func valuesOf[K, V any]() uintptr {
	var k K
	var v V
	return (tagBytes + slotsPerGroup*unsafe.Sizeof(k) + unsafe.Alignof(v) - 1) &^ (unsafe.Alignof(v) - 1)
}

// strideOf returns layout.stride. It is whole lines if that takes at most an eighth more memory.
func strideOf[K, V any]() uintptr {
	var v V
	n := (valuesOf[K, V]() + slotsPerGroup*unsafe.Sizeof(v) + tagBytes - 1) &^ (tagBytes - 1)
	if up := (n + lineBytes - 1) &^ (lineBytes - 1); up-n <= n/8 {
		return up
	}
	return n
}

// tableAlign returns the alignment of tables with groups of stride bytes: a line, or two if each
// group has whole pairs, as processors fetch lines in pairs.
func tableAlign(stride uintptr) uintptr {
	if stride%(2*lineBytes) == 0 {
		return 2 * lineBytes
	}
	return lineBytes
}

// tagsAt returns the word of tags of the group at g.
//
// Precondition: g is the address of a group.
func tagsAt(g unsafe.Pointer) *uint64 { return (*uint64)(g) }
