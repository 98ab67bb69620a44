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

// The slot of a string key has a reference as its key and the hash as its value. With the hash,
// growth does not read the strings.

const textSlotBytes = 16

// refIn returns the reference to a slot's string key.
func refIn(at spot) *ref { return (*ref)(at.key) }

// hashIn returns the hash of a slot's string key.
func hashIn(key unsafe.Pointer) *uint64 { return valueIn[ref, uint64](key, 0) }

// lookUp returns the slot of string key s, its hash, and whether the map has it.
func (c *core) lookUp(s string) (at spot, h uint64, ok bool) {
	if isShortText(s) {
		key, slot, tags, h := probeText(c, hidden(s))
		return spot{pointer(key), pointer(tags), slot}, h, key != absent
	}
	h = c.hash.bytes(unsafe.Slice(unsafe.StringData(s), len(s)))
	at, ok = c.findString(s, h)
	return at, h, ok
}

// findString returns the slot of a string key with hash h.
func (c *core) findString(s string, h uint64) (at spot, ok bool) {
	is := func(at spot) bool { return *hashIn(at.key) == h && c.keyOf(*refIn(at)) == s }
	key, slot, tags := probe(c, h)
	if key != further {
		if at = (spot{pointer(key), pointer(tags), slot}); key == absent || is(at) {
			return at, key != absent
		}
	}
	return c.tableOf(h).search(&c.layout, h, is)
}

// findRef returns the slot in t of r, a reference to a key with hash h.
func (c *core) findRef(t table, r ref, h uint64) (at spot, ok bool) {
	return t.search(&c.layout, h, func(at spot) bool { return *refIn(at) == r })
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
	at, h, found := c.lookUp(key)
	if found {
		if to := refIn(at).pairValue(); len(to) == len(value) {
			copy(unsafe.Slice(unsafe.StringData(to), len(to)), value)
			return nil
		}
	}
	r, err := c.newPair(key, value)
	if err != nil {
		return err
	}
	if found {
		old := *refIn(at)
		*refIn(at) = r
		c.eachCopy(old, h, func(at spot) { *refIn(at) = r })
		c.freePair(old)
		return nil
	}
	if at, err = c.insert(h); err != nil {
		c.freePair(r)
		return err
	}
	*refIn(at), *hashIn(at.key) = r, h
	return nil
}
