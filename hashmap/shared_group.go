// Groups of a Shared: up to seven entries, found by one word of tags.
//
//	tags      | tag 0 | tag 1 | ... | tag 6 | overflow |      from the lowest byte up
//
//	tag       0: free, else 0x80 | 7 bits of the key's hash
//	overflow  bit r: an entry whose tag is r modulo 8 has passed this group
//
// The hash of a key selects a group, its home. If the home is full, the entry passes it, which sets
// a bit of the overflow byte, and takes a slot in the next group. So a search ends at the first
// group without an overflow bit for the key.
//
// Tags are read and written as one word, so the byte order of the machine does not matter.

package hashmap

import (
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
