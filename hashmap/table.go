// Tables: groups in one block, and how they place and remove entries.
//
//	table     | tags 16 B | tags | ... | overflow 1 B | ... | pad | slots | slots | ... |
//
// A search reads a group's tags, and the slots only if a tag matches. The tags of a large map stay
// in the processor's caches: they take 1.1 bytes a slot.
//
// A reference to a table is its address plus its class: a pointer into the table's first 128 bytes.
// The class has the number of groups. Tables of a Shared have classes of their own, from
// sharedClass on, and another head: see shared_head.go.
//
// Invariants (check verifies them):
//   - an entry is in its home or in a group after it, cyclically, and its overflow bit is set in
//     each group that it passed
//   - no other overflow bit is set
//
// Each hash of a NaN is random. So a NaN may be in any group, and the overflow bits need not lead
// to it.
//
// So removing an entry frees its slot at once, without a tombstone.

package hashmap

import (
	"math/bits"
	"unsafe"
)

// A class is a size of tables: the number of groups, and the offset of the first slot.
type class struct{ groups, slots uint32 }

const (
	tableAlign  = 128
	refMask     = tableAlign - 1 // of a reference, for the class
	sharedClass = 64
	classMask   = sharedClass - 1 // of a class, for the size
)

// headBytes is the size of a group's tags and overflow byte.
const headBytes = groupSlots + 1

// classes have 1 to 8 groups, then eight classes for each doubling up to 128 groups, and then one.
// Each 15 groups of 16-byte entries take 4 KiB, with their heads.
var classes = func() (all [refMask + 1]class) {
	for i := range sharedClass {
		n := uint32(i + 1)
		switch {
		case i >= fineClasses:
			n = fineGroups << min(i-fineClasses, 20)
		case i >= 8:
			n = uint32(8+(i+1)%8) << ((i+1)/8 - 1)
		}
		all[i] = class{n, (n*headBytes + lineBytes - 1) &^ (lineBytes - 1)}
		all[i+sharedClass] = class{n, (n*sharedHeadBytes + lineBytes - 1) &^ (lineBytes - 1)}
	}
	return all
}()

const (
	fineClasses = 39 // with fewer than fineGroups
	fineGroups  = 128
)

// A table is a reference to a table: its address plus its class.
type table struct{ ref unsafe.Pointer }

// A spot is a slot of a table: the addresses of its key and of its group's tags, and its number.
type spot struct {
	key, tags unsafe.Pointer
	slot      uintptr
}

// class returns the size of t, without sharedClass.
func (t table) class() uintptr { return uintptr(t.ref) & classMask }

func (t table) shared() bool { return uintptr(t.ref)&sharedClass != 0 }

func (t table) groups() uintptr { return uintptr(classes[t.class()].groups) }

// slots returns the number of slots.
func (t table) slots() int { return int(t.groups()) * groupSlots }

func (t table) base() unsafe.Pointer { return unsafe.Add(t.ref, -int(uintptr(t.ref)&refMask)) }

// home returns the index of the home group of a key with hash h.
func (t table) home(h uint64) uintptr {
	return uintptr(uint64(uint32(h)) * uint64(t.groups()) >> groupShift)
}

// after returns the index of the group after group i.
func (t table) after(i uintptr) uintptr {
	if i++; i < t.groups() {
		return i
	}
	return 0
}

// distance returns how many groups an entry with hash h in group i has passed.
func (t table) distance(h uint64, i uintptr) uintptr {
	home := t.home(h)
	if home > i {
		i += t.groups()
	}
	return i - home
}

// tags returns the address of the tags of group i.
func (t table) tags(i uintptr) unsafe.Pointer { return unsafe.Add(t.base(), i<<(t.headShift()&7)) }

// headShift is the binary logarithm of the distance between the tags of neighbouring groups.
func (t table) headShift() uintptr {
	const mapHeadShift = 4                                                            // groupSlots
	return mapHeadShift + uintptr(t.ref)/sharedClass&1*(sharedHeadShift-mapHeadShift) // without a branch
}

// overflow returns the address of the overflow byte of group i.
func (t table) overflow(i uintptr) *uint8 {
	if t.shared() {
		return (*uint8)(unsafe.Add(t.tags(i), overflowOffset))
	}
	return (*uint8)(unsafe.Add(t.base(), t.groups()*groupSlots+i))
}

// full returns the slots of group i that have entries.
func (t table) full(i uintptr) uint64 { return full(tagWords(t.tags(i))) }

// groupOf returns the index of the group with the given tags.
func (t table) groupOf(tags unsafe.Pointer) uintptr {
	return (uintptr(tags) - uintptr(t.base())) >> (t.headShift() & 7)
}

// at returns slot s of group i.
func (t table) at(l *layout, i, s uintptr) spot {
	key := uintptr(classes[uintptr(t.ref)&refMask].slots) + i*l.groupBytes + l.keys + s*l.keyStep
	return spot{unsafe.Add(t.base(), key), t.tags(i), s}
}

// preferred returns the first slot of the quarter of group i that a key with hash h prefers.
func (t table) preferred(l *layout, i uintptr, h uint64) spot {
	return t.at(l, i, uintptr(h>>quarterShift&3)*quarterSlots)
}

// value returns the address of the value beside a spot's key.
func (l *layout) value(at spot) unsafe.Pointer {
	return unsafe.Add(at.key, at.slot*(l.valueStep-l.keyStep)-l.keys)
}

// tableBytes returns the size of a table of a class.
func (l *layout) tableBytes(of uintptr) uintptr {
	if l.shared {
		of |= sharedClass
	}
	n := uintptr(classes[of].slots) + uintptr(classes[of].groups)*l.groupBytes
	return (n + lineBytes - 1) &^ (lineBytes - 1)
}

// search looks for a key with hash h in t. It calls isKey with each slot whose tag matches, and
// returns the first one for which isKey reports true.
func (t table) search(l *layout, h uint64, isKey func(at spot) bool) (at spot, ok bool) {
	i, tag := t.home(h), fingerprint(h)
	for range t.groups() {
		lo, hi := tagWords(t.tags(i))
		for match := matching(lo, hi, tag); match != 0; match &= match - 1 {
			if at := t.at(l, i, first(match)); isKey(at) {
				return at, true
			}
		}
		if *t.overflow(i)&overflowBit(tag) == 0 {
			return at, false
		}
		i = t.after(i)
	}
	return at, false
}

// maxPasses is how many groups a new entry may pass before its table grows, which is then about 0.9
// full. A greater number saves memory and makes searches longer.
const maxPasses = 7

// place takes a free slot for an entry with hash h: in its home, or in one of the next reach
// groups. It sets the tag and the overflow bits; the caller writes the key and the value. If there
// is no free slot, it changes nothing and reports false.
func (t table) place(l *layout, h uint64, reach uintptr) (at spot, ok bool) {
	if at, ok = t.roomAtHome(l, h); ok {
		l.storeByte(tagIn(at.tags, at.slot), fingerprint(h))
		return at, true
	}
	if at, ok = t.room(l, h, reach); ok {
		l.storeByte(tagIn(at.tags, at.slot), fingerprint(h))
		t.pass(l, h, t.groupOf(at.tags))
	}
	return at, ok
}

// room returns the slot that place takes.
func (t table) room(l *layout, h uint64, reach uintptr) (at spot, ok bool) {
	i := t.home(h)
	for range min(reach+1, t.groups()) {
		if free := t.full(i) ^ allSlots; free != 0 {
			return t.at(l, i, pick(free, h)), true
		}
		i = t.after(i)
	}
	return at, false
}

// roomAtHome is room in the home alone.
func (t table) roomAtHome(l *layout, h uint64) (at spot, ok bool) {
	key, slot, tags := probeRoom(l, t, h)
	return spot{pointer(key), pointer(tags), slot}, key != absent
}

// pass sets the overflow bits for an entry with hash h in group i.
func (t table) pass(l *layout, h uint64, i uintptr) {
	for at := t.home(h); at != i; at = t.after(at) {
		l.storeByte(t.overflow(at), *t.overflow(at)|overflowBit(fingerprint(h)))
	}
}

// remove frees the slot in t of an entry with hash h, and clears the overflow bits that only this
// entry needed.
func (c *scheme) remove(t table, at spot, h uint64) {
	c.storeByte(tagIn(at.tags, at.slot), 0)
	c.unpass(t, at, h)
}

// unpass clears the overflow bits that only the removed entry with hash h needed.
func (c *scheme) unpass(t table, at spot, h uint64) {
	tag, last := fingerprint(h), t.groupOf(at.tags)
	for i := t.home(h); i != last; i = t.after(i) {
		if !c.passes(t, i, tag) {
			c.storeByte(t.overflow(i), *t.overflow(i)&^overflowBit(tag))
		}
	}
}

// passes reports whether an entry with the overflow bit of a tag has passed group i. It reads all
// groups after i where the entry can be.
func (c *scheme) passes(t table, i uintptr, tag uint8) bool {
	at := i
	for n := uintptr(1); n < t.groups(); n++ {
		at = t.after(at)
		lo, hi := tagWords(t.tags(at))
		for entries := passers(lo, hi, tag); entries != 0; entries &= entries - 1 {
			key := t.at(&c.layout, at, first(entries)).key
			if h := c.hashOfKey(key); t.distance(h, at) >= n && !c.isNaN(key, h) {
				return true
			}
		}
		if *t.overflow(at)&overflowBit(tag) == 0 {
			return false
		}
	}
	return false
}

// hashOfKey returns the hash of the key in a slot. It is hashAt, without a call for keys of 8
// bytes.
func (c *scheme) hashOfKey(key unsafe.Pointer) uint64 {
	if c.short && c.keyBytes == 8 {
		return c.hash.word(*(*uint64)(key))
	}
	return c.hashAt(key)
}

// count returns the number of entries in t.
func (t table) count() (n int) {
	for i := range t.groups() {
		n += bits.OnesCount64(t.full(i))
	}
	return n
}

// move copies an entry with hash h to table to.
func (c *core) move(to table, from spot, h uint64) {
	at, ok := to.place(&c.layout, h, to.groups())
	if !ok {
		panic("freehold: hashmap: a table that grew is full") // it has room for all entries
	}
	c.copyEntry(at, from)
	c.moved++
}

// copyEntry copies the key and the value of a slot to another.
func (c *core) copyEntry(to, from spot) {
	copyBytes(c.value(to), c.value(from), c.valueStep)
	if c.keys >= c.keyStep { // not in the same piece
		copyBytes(to.key, from.key, c.keyStep)
	}
}

// isNaN reports whether the key of a slot has a NaN: then its hash now differs from h, an earlier
// result of hashAt. No search finds such a key.
func (c *scheme) isNaN(key unsafe.Pointer, h uint64) bool {
	return c.hash.kind == otherKeys && c.hashAt(key) != h
}

// copyBytes copies n bytes without Go pointers.
func copyBytes(to, from unsafe.Pointer, n uintptr) {
	switch n {
	case 8:
		*(*[8]byte)(to) = *(*[8]byte)(from)
	case 16:
		*(*[16]byte)(to) = *(*[16]byte)(from)
	default:
		copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n))
	}
}
