// Tables: groups in one block, and how they place and remove entries.
//
//	table     | group 0 | group 1 | ... | group 2^log - 1 |      aligned to a line
//
// A reference to a table is its address plus log: a pointer into the table's first line.
//
// Invariants (check verifies them):
//   - an entry is in its home or in a group after it, cyclically, and its overflow bit is set in
//     each group that it passed
//   - no other overflow bit is set, except for NaNs, which may be in any group since each hash of
//     a NaN is random
//
// So removing an entry frees its slot at once, without a tombstone.

package hashmap

import "unsafe"

// A table is a reference to a table: its address plus log.
type table struct{ ref unsafe.Pointer }

const logMask = lineBytes - 1

func (t table) log() uintptr { return uintptr(t.ref) & logMask }

func (t table) groups() uintptr { return 1 << (t.log() & 63) }

func (t table) base() unsafe.Pointer { return unsafe.Add(t.ref, -int(t.log())) }

// home returns the index of the home group of a key with hash h.
func (t table) home(h uint64) uintptr {
	return uintptr(uint64(uint32(h)) << (t.log() & 63) >> groupShift)
}

// after returns the group for a key with hash h that has passed the given number of groups.
func (t table) after(h uint64, passed, stride uintptr) unsafe.Pointer {
	return t.group((t.home(h)+passed)&(t.groups()-1), stride)
}

// group returns group i.
func (t table) group(i, stride uintptr) unsafe.Pointer { return unsafe.Add(t.base(), i*stride) }

// homeOf returns the home group of a key with hash h.
func (c *core) homeOf(h uint64, stride uintptr) unsafe.Pointer {
	t := c.tableOf(h)
	return unsafe.Add(t.base(), t.home(h)*stride)
}

// maxPasses is how many groups a new entry may pass before its table grows, which is then about 0.8
// full. A greater number saves memory and makes searches longer.
const maxPasses = 7

// key returns a slot's key.
func (l *layout) key(g unsafe.Pointer, slot uintptr) unsafe.Pointer {
	return unsafe.Add(g, l.keys+slot*l.keyBytes)
}

// value returns a slot's value.
func (l *layout) value(g unsafe.Pointer, slot uintptr) unsafe.Pointer {
	return unsafe.Add(g, l.values+slot*l.valueBytes)
}

// place takes a free slot for an entry with hash h: in its home, or in one of the next reach
// groups. It sets the tag and the overflow bits; the caller writes the key and the value. If there
// is no free slot, it changes nothing and reports false.
func (t table) place(l *layout, h uint64, reach uintptr) (g unsafe.Pointer, slot uintptr, ok bool) {
	last := t.groups() - 1
	home := t.home(h)
	tag := tagOf(h)
	for passed := uintptr(0); passed <= last && passed <= reach; passed++ {
		g := t.group((home+passed)&last, l.stride)
		w := tagsAt(g)
		free := matchFree(*w)
		if free == 0 {
			continue
		}
		for i := range passed {
			*tagsAt(t.group((home+i)&last, l.stride)) |= passBit(tag)
		}
		slot := slotOf(free)
		*w = setTag(*w, slot, tag)
		return g, slot, true
	}
	return nil, 0, false
}

// remove frees the slot of an entry with hash h, and clears the overflow bits that only this entry
// needed.
func (c *core) remove(g unsafe.Pointer, slot uintptr, h uint64) {
	t := c.tableOf(h)
	w := tagsAt(g)
	*w = setTag(*w, slot, 0)
	last := t.groups() - 1
	home, tag := t.home(h), tagOf(h)
	at := uintptr(unsafe.Pointer(g)) - uintptr(t.base())
	for i := home; i*c.stride != at; i = (i + 1) & last {
		if !c.passes(t, i, tag) {
			*tagsAt(t.group(i, c.stride)) &^= passBit(tag)
		}
	}
	c.len--
}

// passes reports whether an entry with the overflow bit of tag has passed group i. It reads all
// groups after i where the entry can be.
func (c *core) passes(t table, i uintptr, tag uint64) bool {
	last := t.groups() - 1
	for n := uintptr(1); n <= last; n++ {
		at := (i + n) & last
		g := t.group(at, c.stride)
		w := *tagsAt(g)
		for full := matchFull(w); full != 0; full &= full - 1 {
			slot := slotOf(full)
			if w>>(8*slot&63)&7 != tag&7 {
				continue
			}
			h := c.hashOfKey(c.key(g, slot))
			if (at-t.home(h))&last >= n && !c.isNaN(c.key(g, slot), h) {
				return true
			}
		}
		if w&passBit(tag) == 0 {
			return false
		}
	}
	return false
}

// hashOfKey returns the hash of the key in a slot. It is hashAt, without a call for keys of 8
// bytes.
func (c *core) hashOfKey(key unsafe.Pointer) uint64 {
	if c.short && c.keyBytes == 8 {
		return c.hash.word(*(*uint64)(key))
	}
	return c.hashAt(key)
}

// count returns the number of entries in t.
func (c *core) count(t table) (n int) {
	for i := range t.groups() {
		for full := matchFull(*tagsAt(t.group(i, c.stride))); full != 0; full &= full - 1 {
			n++
		}
	}
	return n
}

// move copies the entry of a slot to table to.
func (c *core) move(to table, g unsafe.Pointer, slot uintptr, h uint64) {
	d, at, ok := to.place(&c.layout, h, to.groups())
	if !ok {
		panic("freehold: hashmap: a table that grew is full") // it has room for twice the entries
	}
	c.copyEntry(d, at, g, slot)
}

// copyEntry copies the key and the value of a slot to another.
func (c *core) copyEntry(to unsafe.Pointer, at uintptr, g unsafe.Pointer, slot uintptr) {
	copyBytes(c.key(to, at), c.key(g, slot), c.keyBytes)
	copyBytes(c.value(to, at), c.value(g, slot), c.valueBytes)
	c.moved++
}

// isNaN reports whether the key of a slot has a NaN: then its hash now differs from h, an earlier
// result of hashAt. No search finds such a key.
func (c *core) isNaN(key unsafe.Pointer, h uint64) bool {
	return c.hash.kind == otherKeys && c.hashAt(key) != h
}

// copyBytes copies n bytes without Go pointers.
func copyBytes(to, from unsafe.Pointer, n uintptr) {
	if n == 8 {
		*(*[8]byte)(to) = *(*[8]byte)(from)
		return
	}
	copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n))
}
