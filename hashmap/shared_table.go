// Tables of a Shared: groups with versions, behind a head with the lock.
//
//	table   | head, pad | group 0 | group 1 | ... |       2^class units of one group's size
//	group   | tags 8 B | version 8 B | key, value | key, value | ... |    7 entries
//
// With a K and a V of one word each, a group has 128 bytes. Tags are as in group.go. Keys and
// values take whole words, so that they can be loaded atomically. Text, which includes large
// values, is a reference to a block: see shared_text.go.
//
// Deleting an entry frees its slot at once, but leaves the overflow bits of its group, so searches
// may pass the group without need. To bound that, a slot in a group with overflow bits still counts
// as taken. When the table has no room, it is copied, and the copy has only the necessary bits.
//
// Invariants (check verifies them):
//   - live is the number of tags that are not free
//   - live <= the room of the class - left
//   - each entry but a NaN is found from its home
//   - versions are even while the lock is free

package hashmap

import (
	"sync"
	"unsafe"
)

// shardHead begins a table. mu guards the table's words; readers load the groups' words without it.
type shardHead struct {
	mu    sync.Mutex // 8 bytes without pointers; not used in race builds: see shared_lock_race.go
	live  uintptr    // entries
	text  uintptr    // bytes of the blocks of its entries
	left  uintptr    // slots to take before the table is replaced
	depth uintptr    // leading bits of the hash that all entries share
}

const (
	shardHeadBytes = 16 // tags and version

	_ = lineBytes - unsafe.Sizeof(shardHead{}) // the smallest unit has room for a head
)

// shardLayout is the arrangement of a group, in bytes.
type shardLayout struct{ stride, slot, value uintptr }

// shardLayoutOf is inlined and folded to constants.
func shardLayoutOf(keyBytes, valueBytes uintptr) shardLayout {
	slot := keyBytes + valueBytes
	stride := (shardHeadBytes + slotsPerGroup*slot + tagBytes - 1) &^ (tagBytes - 1)
	if up := (stride + lineBytes - 1) &^ (lineBytes - 1); up-stride <= stride/8 || up == lineBytes {
		stride = up
	}
	return shardLayout{stride, slot, keyBytes}
}

// A table's entry in a directory is its address and its class.
const classMask = lineBytes - 1

func tableOf(e uintptr) uintptr  { return e &^ classMask }
func classOf(e uintptr) uintptr  { return e & classMask }
func groupsOf(e uintptr) uintptr { return 1<<(e&classMask) - 1 }

// roomOf returns how many slots of a table of a class may be taken: 11 of 16, or all of
// a single group.
func roomOf(class uintptr) uintptr {
	if class == 1 {
		return slotsPerGroup
	}
	return slotsPerGroup * (1<<class - 1) * 11 / 16
}

// homeOf returns the number of the home group of a key with hash h.
func homeOf(h uint64, groups uintptr) uintptr {
	return uintptr(uint64(uint32(h)) * uint64(groups) >> groupShift)
}

func headOf(e uintptr) *shardHead        { return (*shardHead)(pointer(tableOf(e))) }
func versionOf(g unsafe.Pointer) *uint64 { return (*uint64)(unsafe.Add(g, tagBytes)) }

func (m *sharedTables) group(t, i uintptr) unsafe.Pointer { return pointer(t + (i+1)*m.layout.stride) }

func (m *sharedTables) slot(g unsafe.Pointer, i uintptr) unsafe.Pointer {
	return unsafe.Add(g, shardHeadBytes+i*m.layout.slot)
}

// eachSlot calls f with the group and the slot of each entry of a locked table.
func (m *sharedTables) eachSlot(e uintptr, f func(g, slot unsafe.Pointer)) {
	for i := range groupsOf(e) {
		g := m.group(tableOf(e), i)
		for full := matchFull(*tagsAt(g)); full != 0; full &= full - 1 {
			f(g, m.slot(g, slotOf(full)))
		}
	}
}

// reset empties a table that is in no directory. It raises all versions, so that readers of an
// earlier table at this address fail R5.
func (m *sharedTables) reset(e, depth uintptr) {
	for i := range groupsOf(e) {
		g := m.group(tableOf(e), i)
		raise(g)
		store64(tagsAt(g), 0)
	}
	hd := headOf(e)
	storeWord(&hd.live, 0)
	storeWord(&hd.text, 0)
	hd.left, hd.depth = roomOf(classOf(e)), depth
}

// empty removes all entries of a locked table.
func (m *sharedTables) empty(x held) {
	hd := headOf(x.e)
	if hd.left == roomOf(classOf(x.e)) {
		return // it has no entries, and no overflow bits that count as room
	}
	for i := range groupsOf(x.e) {
		store64(tagsAt(m.group(tableOf(x.e), i)), 0)
	}
	storeWord(&hd.live, 0)
	storeWord(&hd.text, 0)
	hd.left = roomOf(classOf(x.e))
}

// raise is W1: the words of free slots may change from here on.
func raise(g unsafe.Pointer) { store64(versionOf(g), *versionOf(g)+2) }

// place returns a free slot for an entry with hash h, and sets overflow bits before it. The table
// has a free slot. It is locked, or in no directory.
func (m *sharedTables) place(e uintptr, h uint64) (g unsafe.Pointer, slot uintptr) {
	tag, groups := tagOf(h), groupsOf(e)
	for i := homeOf(h, groups); ; {
		g = m.group(tableOf(e), i)
		w := *tagsAt(g)
		if free := matchFree(w); free != 0 {
			return g, slotOf(free)
		}
		store64(tagsAt(g), w|passBit(tag))
		if i++; i == groups {
			i = 0
		}
	}
}

// fill publishes an entry with hash h in a placed slot, whose words are written. text is the size
// of its blocks.
func fill(e uintptr, g unsafe.Pointer, slot uintptr, h uint64, text uintptr) {
	store64(tagsAt(g), setTag(*tagsAt(g), slot, tagOf(h))) // W3
	hd := headOf(e)
	hd.left--
	storeWord(&hd.live, hd.live+1)
	storeWord(&hd.text, hd.text+text)
}

// vacate frees the slot of an entry with blocks of text bytes.
func vacate(e uintptr, g unsafe.Pointer, slot uintptr, text uintptr) {
	w := setTag(*tagsAt(g), slot, 0)
	store64(tagsAt(g), w)
	hd := headOf(e)
	if w>>overflowShift == 0 {
		hd.left++
	}
	storeWord(&hd.live, hd.live-1)
	storeWord(&hd.text, hd.text-text)
}
