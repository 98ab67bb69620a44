// Slots: the words of the index.
//
//	| tag 27 | main 1 | hits 2 | place 34 |        0 is an empty slot
//
// The tag is a part of the key's hash. It determines both homes of the slot: see internal/cuckoo.
// main says that the item is in the main queue, else it is in the small one. The place of the item
// is the number of its segment and its offset there, in units of 4 B.
//
// Writers change slots under the shard's lock. Readers count hits by compare-and-swap. So a
// writer's store may undo a hit, but a hit never undoes a writer's store.

package cache

import "github.com/freehold-go/freehold/internal/cuckoo"

type slot uint64

const (
	hitsBits  = 2
	placeBits = 34

	maxHits       = 1<<hitsBits - 1
	oneHit   slot = 1 << placeBits
	hitsMask slot = maxHits << placeBits
	mainBit  slot = 1 << (placeBits + hitsBits)

	tagShift = placeBits + hitsBits + 1
	maxPlace = 1<<placeBits - 1
	tagMask  = 1<<cuckoo.TagBits - 1
)

// The fields fill 64 bits.
const _ = uint(64-cuckoo.TagBits-tagShift) + uint(tagShift+cuckoo.TagBits-64)

// A place is the position of an item: segment number and offset.
type place uint64

// tagOf returns the tag of a key with hash h.
func tagOf(h uint64) uint32 { return uint32(h) & tagMask }

func slotOf(tag uint32, at place, main bool, hits int) slot {
	w := slot(tag)<<tagShift | slot(hits)<<placeBits | slot(at)
	if main {
		w |= mainBit
	}
	return w
}

func (w slot) tag() uint32  { return uint32(w >> tagShift) }
func (w slot) main() bool   { return w&mainBit != 0 }
func (w slot) hits() int    { return int(w & hitsMask / oneHit) }
func (w slot) place() place { return place(w & maxPlace) }
