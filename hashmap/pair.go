// Pairs: a string key and its string or bytes, in one block.
//
//	slot   | ref |--> | key's bytes | value's bytes |
//	ref    | length of the value 10 bits | length of the key 9 bits | address / 8, 45 bits |
//
// So a hit reads the line of tags and references and then the line of both. Where a length does
// not fit, that of the key is all ones, and the block begins with both lengths, of 8 bytes each.
// A pair without bytes has no block.
//
// A value of another length takes another block, so the slot's reference changes. Cursors with a
// copy of the slot are told.

package hashmap

import (
	"encoding/binary"
	"unsafe"
)

const (
	pairKeyBits  = 9
	pairKeyLimit = 1<<pairKeyBits - 1
	valueShift   = refAddrBits + pairKeyBits
	valueLimit   = 1<<(64-valueShift) - 1
)

// pairLengths returns the lengths of a pair's key and value, and how many bytes precede them.
func (r ref) pairLengths() (key, value, head int) {
	key, value = int(r>>refAddrBits)&pairKeyLimit, int(r>>valueShift)
	if key == pairKeyLimit {
		b := unsafe.Slice((*byte)(r.block()), 2*lengthBytes)
		key, value = int(binary.NativeEndian.Uint64(b)), int(binary.NativeEndian.Uint64(b[lengthBytes:]))
		head = 2 * lengthBytes
	}
	return key, value, head
}

// pairKey returns the key's bytes, which are the map's memory.
func (r ref) pairKey() string {
	key, _, head := r.pairLengths()
	return unsafe.String((*byte)(unsafe.Add(r.block(), head)), key)
}

// pairValue returns the value's bytes, which are the map's memory.
func (r ref) pairValue() string {
	if key := uintptr(r>>refAddrBits) & pairKeyLimit; key < pairKeyLimit { // inlined
		return unsafe.String((*byte)(unsafe.Add(r.block(), key)), int(r>>valueShift))
	}
	return r.longValue()
}

func (r ref) longValue() string {
	key, value, head := r.pairLengths()
	return unsafe.String((*byte)(unsafe.Add(r.block(), head+key)), value)
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

// putPair sets the value of a key. One of the same length is written in place, which needs no
// memory. key and value may be parts of the map's own blocks.
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
