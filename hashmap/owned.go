// Owned: how a Map finds and writes the blocks of string keys.

package hashmap

import (
	"encoding/binary"
	"unsafe"
)

// keyOf returns the string key behind a slot's reference.
func (c *core) keyOf(r ref) string {
	if c.pairs {
		return r.pairKey()
	}
	return r.text(c.head)
}

// findString returns the group and the slot of a string key with hash h, or nil.
func (c *core) findString(s string, h uint64) (g unsafe.Pointer, slot uintptr) {
	t, tag := c.tableOf(h), tagOf(h)
	for passed := uintptr(0); passed < t.groups(); passed++ {
		g := t.after(h, passed, refStride)
		w := *tagsAt(g)
		for match := matchTag(w, tag); match != 0; match &= match - 1 {
			if slot := slotOf(match); c.keyOf(*refIn(g, slot)) == s {
				return g, slot
			}
		}
		if w&passBit(tag) == 0 {
			return nil, 0
		}
	}
	return nil, 0
}

// lookUp returns the reference to the block of string key s, its hash, and whether the map has it.
//
// If s has 8 to 16 bytes, it searches the first group without a call, as Get does.
func (c *core) lookUp(s string) (r ref, h uint64, ok bool) {
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	if len(b) < 8 || len(b) > 16 {
		return c.lookUpFar(s, c.hash.bytes(b))
	}
	x, y := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[len(b)-8:])
	h = c.hash.seed.Words(x, y, len(b)) &^ c.hash.narrow
	g, tag := c.homeOf(h, refStride), tagOf(h)
	w := *tagsAt(g)
	if match := matchTag(w, tag); match != 0 {
		r := *refIn(g, slotOf(match))
		if uintptr(r>>refAddrBits)&c.keyLimit == uintptr(len(b)) {
			key := unsafe.Slice((*byte)(unsafe.Add(r.block(), c.head)), len(b))
			if binary.LittleEndian.Uint64(key) == x && binary.LittleEndian.Uint64(key[len(b)-8:]) == y {
				return r, h, true
			}
		}
	} else if w&passBit(tag) == 0 {
		return 0, h, false
	}
	return c.lookUpFar(s, h)
}

// lookUpFar is lookUp for a string with hash h.
func (c *core) lookUpFar(s string, h uint64) (ref, uint64, bool) {
	if g, slot := c.findString(s, h); g != nil {
		return *refIn(g, slot), h, true
	}
	return 0, h, false
}

// findRef returns the group and the slot in t of r, a reference to a key with hash h, or nil.
func (c *core) findRef(t table, r ref, h uint64) (g unsafe.Pointer, slot uintptr) {
	for passed := uintptr(0); passed < t.groups(); passed++ {
		g := t.after(h, passed, refStride)
		w := *tagsAt(g)
		for match := matchTag(w, tagOf(h)); match != 0; match &= match - 1 {
			if slot := slotOf(match); *refIn(g, slot) == r {
				return g, slot
			}
		}
		if w&passBit(tagOf(h)) == 0 {
			return nil, 0
		}
	}
	return nil, 0
}

// refStride is the stride of groups whose slots are references to keys: a line.
const refStride = tagBytes + slotsPerGroup*refBytes

// refIn returns the address of the reference to a slot's key.
func refIn(g unsafe.Pointer, slot uintptr) *ref {
	return (*ref)(unsafe.Add(g, tagBytes+slot*refBytes))
}

// newPair returns a reference to a block with a key and a value.
func (c *core) newPair(key, value string) (ref, error) {
	n, head := uint64(len(key))|uint64(len(value))<<pairKeyBits, 0
	if len(key) >= pairKeyLimit || len(value) > valueLimit {
		n, head = pairKeyLimit, 2*lengthBytes
	}
	size := head + len(key) + len(value)
	if size == 0 {
		return 0, nil
	}
	p, err := c.alloc(uintptr(size), blockAlign)
	if err != nil {
		return 0, err
	}
	r, err := refAt(p)
	if err != nil {
		c.free(p, uintptr(size))
		return 0, err
	}
	b := unsafe.Slice((*byte)(p), size)
	if head > 0 {
		binary.NativeEndian.PutUint64(b, uint64(len(key)))
		binary.NativeEndian.PutUint64(b[lengthBytes:], uint64(len(value)))
	}
	copy(b[head:], key)
	copy(b[head+len(key):], value)
	return r | ref(n<<refAddrBits), nil
}

func (c *core) freePair(r ref) {
	if key, value, head := r.pairLengths(); head+key+value > 0 {
		c.free(r.block(), uintptr(head+key+value))
	}
}

// putPair sets the value of a key. It overwrites a value of the same length, which needs no memory.
// Otherwise the pair gets a new block, so the slot's reference changes, also in copies of cursors.
// key and value may be parts of the map's own blocks.
func (c *core) putPair(key, value string) error {
	old, h, found := c.lookUp(key)
	if found {
		if to := old.pairValue(); len(to) == len(value) {
			copy(unsafe.Slice(unsafe.StringData(to), len(to)), value)
			return nil
		}
	}
	r, err := c.newPair(key, value)
	if err != nil {
		return err
	}
	if found {
		g, slot := c.findRef(c.tableOf(h), old, h)
		*refIn(g, slot) = r
		c.replaceCopies(old, r, h)
		c.freePair(old)
		return nil
	}
	g, slot, err := c.insert(h)
	if err != nil {
		c.freePair(r)
		return err
	}
	*refIn(g, slot) = r
	return nil
}
