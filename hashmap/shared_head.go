// Heads of a Shared: its tables have a lock and versions.
//
//	table   | lock 128 B | head | head | ... | slots | slots | ... |
//	head    | tags 16 B | version 8 B | overflow 1 B | pad |      of a group
//
// A reference to a table has the address of the first head. All else is as in table.go. The version
// of a group is odd only while a writer replaces a value in the group. It is in the line of the
// tags, which a reader loads anyway. Keys and values take whole words, so that they can be loaded
// atomically. They are side by side, the value in front. Text, which includes large values, is a
// reference to a block: see shared_text.go.
//
// Invariants (check verifies them), besides the ones in table.go:
//   - live is the number of tags that are not free
//   - versions are even while the lock is free

package hashmap

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

// sharedHead is in front of the heads of a table. mu guards the table's words; readers load tags,
// versions and slots without it.
type sharedHead struct {
	mu    sync.Mutex // 8 bytes without pointers; not used in race builds: see shared_lock_race.go
	live  uintptr    // entries
	text  uintptr    // bytes of the blocks of its entries
	depth uintptr    // leading bits of the hash that all entries share
}

const (
	frontBytes      = tableAlign // for sharedHead, which has lines of its own
	sharedHeadBytes = 1 << sharedHeadShift
	sharedHeadShift = 5
	versionOffset   = groupSlots
	overflowOffset  = groupSlots + 8
	wordMask        = 7 // of an address, for a byte's place in its word

	_ = frontBytes - unsafe.Sizeof(sharedHead{})
)

// sharedLayout is inlined, and its fields but limits are folded to constants.
func sharedLayout(keyBytes, valueBytes uintptr) layout {
	n := keyBytes + valueBytes
	return layout{keyBytes: keyBytes, valueBytes: valueBytes, keyStep: n, valueStep: n, keys: valueBytes, groupBytes: max(groupSlots*n, groupSlots), shared: true}
}

// sharedBytes returns the size of a table of a class.
func (l *layout) sharedBytes(class uintptr) uintptr { return frontBytes + l.tableBytes(class) }

func (t table) head() *sharedHead { return (*sharedHead)(unsafe.Add(t.base(), -frontBytes)) }

// versionOf returns the address of the version of the group with the given tags.
func versionOf(tags unsafe.Pointer) *uint64 { return (*uint64)(unsafe.Add(tags, versionOffset)) }

// tableAt returns the table of an entry of a directory, which is not 0 or replacedDirectory.
func tableAt(e uintptr) table { return table{pointer(e)} }

// loadTags is tagWords for readers.
func loadTags(tags unsafe.Pointer) (lo, hi uint64) {
	lo, hi = atomic.LoadUint64((*uint64)(tags)), atomic.LoadUint64((*uint64)(unsafe.Add(tags, 8)))
	if firstByte != 1 {
		return bits.ReverseBytes64(lo), bits.ReverseBytes64(hi)
	}
	return lo, hi
}

// firstByte is 1 on a processor whose words have the lowest byte first.
var firstByte = func() byte {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one))
}()

// loadByte loads a byte of a table's tags or overflow bits, for readers. All accesses to these are
// of whole words, since sync/atomic has no smaller ones.
func loadByte(p *uint8) uint8 {
	at := uintptr(unsafe.Pointer(p)) & wordMask
	w := atomic.LoadUint64((*uint64)(unsafe.Add(unsafe.Pointer(p), -int(at))))
	return (*[8]uint8)(unsafe.Pointer(&w))[at]
}

// eachSlot calls f with the address of each key in a locked table.
func (l *layout) eachSlot(t table, f func(slot unsafe.Pointer)) {
	for i := range t.groups() {
		for entries := t.full(i); entries != 0; entries &= entries - 1 {
			f(t.at(l, i, first(entries)).key)
		}
	}
}

// reset empties a table that is in no directory. It raises all versions, so that readers of an
// earlier table at this address fail R5.
func (t table) reset(depth uintptr) {
	for i := range t.groups() {
		raise(versionOf(t.tags(i)))
	}
	t.clear()
	t.head().depth = depth
}

// clear removes all entries of a table that is locked or in no directory. It clears the tags of a
// group before its overflow bits, so that a search finds an entry until it is removed.
func (t table) clear() {
	for i := range t.groups() {
		for _, at := range [...]int{0, 8, overflowOffset} {
			store64((*uint64)(unsafe.Add(t.tags(i), at)), 0)
		}
	}
	storeWord(&t.head().live, 0)
	storeWord(&t.head().text, 0)
}

// raise is W1: the words of free slots may change from here on.
func raise(version *uint64) { store64(version, *version+2) }

// roomFor returns a slot for a new entry with hash h in a locked table. As makePlace does, it
// searches the whole table if that is sparse.
func (t table) roomFor(l *layout, h uint64) (at spot, ok bool) {
	if at, ok = t.roomAtHome(l, h); ok {
		return at, true
	}
	at, ok = t.room(l, h, maxPasses)
	if !ok && t.groups() > maxPasses && t.head().live*sparseShare < uintptr(t.slots()) {
		return t.room(l, h, t.groups())
	}
	return at, ok
}

// fill publishes an entry with hash h in a slot, whose words are written. text is the size of its
// blocks.
func (t table) fill(l *layout, at spot, h uint64, text uintptr) {
	l.storeByte(tagIn(at.tags, at.slot), fingerprint(h)) // W3
	t.head().count(1, text)
}

// count adds entries and bytes of text, which may be negative numbers, to the table's figures.
func (hd *sharedHead) count(entries, text uintptr) {
	storeWord(&hd.live, hd.live+entries)
	if text != 0 {
		storeWord(&hd.text, hd.text+text)
	}
}
