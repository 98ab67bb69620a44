// Owned: strings and bytes, which a Map keeps as copies in blocks of their own. A Shared
// has the same references: shared_text.go.
//
//	slot of a string key    | ref |--> | value | key's bytes |
//	slot of a string value  | ref |--> | value's bytes |
//
//	ref                     | length 19 bits | address / 8, 45 bits |
//
// So a search reads the line of tags and references and then the line of the key, where
// the value is too. A length of 19 ones says that 8 bytes with the length precede
// the bytes. No bytes and no value take no block.

package hashmap

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/freehold-go/freehold"
)

// A valueKind says how values are stored.
type valueKind uint8

const (
	plainValues  valueKind = iota // as they are
	stringValues                  // as a ref
	bytesValues                   // as a ref
)

func valueKindOf(t reflect.Type) valueKind {
	switch {
	case t.Kind() == reflect.String:
		return stringValues
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return bytesValues
	}
	return plainValues
}

// A ref refers to a block with a head, whose size is the same for all blocks of its
// kind, and bytes.
type ref uint64

const (
	refBytes    = 8
	refAddrBits = 45
	blockAlign  = 8
	longBytes   = 1<<(64-refAddrBits) - 1 // from this length on, it is in the block
	lengthBytes = 8
)

// block returns the block's address.
func (r ref) block() unsafe.Pointer {
	addr := uintptr(r & (1<<refAddrBits - 1) * blockAlign)
	return *(*unsafe.Pointer)(unsafe.Pointer(&addr))
}

// text returns the bytes behind a head of that size. They are the map's memory.
func (r ref) text(head uintptr) string {
	p := unsafe.Add(r.block(), head)
	n := int(r >> refAddrBits)
	if n == longBytes {
		n = int(binary.NativeEndian.Uint64(unsafe.Slice((*byte)(p), lengthBytes)))
		p = unsafe.Add(p, lengthBytes)
	}
	return unsafe.String((*byte)(p), n)
}

// newBlock returns a block with a head, whose contents are undefined, and the bytes of s.
func (c *core) newBlock(head uintptr, align int, s string) (ref, error) {
	size := blockBytes(head, len(s))
	if size == 0 {
		return 0, nil
	}
	p, err := c.alloc(size, max(align, blockAlign))
	if err != nil {
		return 0, err
	}
	r, err := refTo(p, head, s)
	if err != nil {
		c.free(p, size)
	}
	return r, err
}

// refTo returns a reference to the block at p, and writes the bytes of s behind its head.
//
// Precondition: the block has blockBytes(head, len(s)) bytes.
func refTo(p unsafe.Pointer, head uintptr, s string) (ref, error) {
	addr := uint64(uintptr(p)) / blockAlign
	if addr >= 1<<refAddrBits {
		return 0, fmt.Errorf("%w: a block at %#x is beyond 48 bits of address", freehold.ErrOutOfMemory, uintptr(p))
	}
	n := len(s)
	to := unsafe.Slice((*byte)(unsafe.Add(p, head)), blockBytes(0, n))
	if n >= longBytes {
		binary.NativeEndian.PutUint64(to, uint64(n))
		to, n = to[lengthBytes:], longBytes
	}
	copy(to, s)
	return ref(addr | uint64(n)<<refAddrBits), nil
}

// blockBytes returns the size of a block for n bytes.
func blockBytes(head uintptr, n int) uintptr {
	if n >= longBytes {
		head += lengthBytes
	}
	return head + uintptr(n)
}

func (c *core) freeBlock(r ref, head uintptr) {
	if size := blockBytes(head, len(r.text(head))); size > 0 {
		c.free(r.block(), size)
	}
}

// findString returns the group and the slot of a string key with hash h, or nil.
func (c *core) findString(s string, h uint64) (g unsafe.Pointer, slot uintptr) {
	t := c.tableOf(h)
	last := t.groups() - 1
	tag := tagOf(h)
	for i, n := t.home(h), uintptr(0); n <= last; i, n = (i+1)&last, n+1 {
		g := t.group(i, refStride)
		w := *tagsAt(g)
		for match := matchTag(w, tag); match != 0; match &= match - 1 {
			slot := slotOf(match)
			if (*refIn(g, slot)).text(c.head) == s {
				return g, slot
			}
		}
		if w&passBit(tag) == 0 {
			break
		}
	}
	return nil, 0
}

// valueOfText returns where the value of a string key is, or nil.
//
// The first group is searched without a call, as in Get, if the key has 8 to 16 bytes.
//
// Precondition: texts is set.
func (c *core) valueOfText(s string) unsafe.Pointer {
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	if len(b) < 8 || len(b) > 16 {
		return c.valueOfString(s, c.hash.bytes(b))
	}
	x, y := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[len(b)-8:])
	h := c.hash.seed.Words(x, y, len(b)) &^ c.hash.narrow
	g, tag := c.homeOf(h, refStride), tagOf(h)
	w := *tagsAt(g)
	if match := matchTag(w, tag); match != 0 {
		r := *refIn(g, slotOf(match))
		if int(r>>refAddrBits) == len(b) {
			value := r.block()
			key := unsafe.Slice((*byte)(unsafe.Add(value, c.head)), len(b))
			if binary.LittleEndian.Uint64(key) == x && binary.LittleEndian.Uint64(key[len(b)-8:]) == y {
				return value
			}
		}
	} else if w&passBit(tag) == 0 {
		return nil
	}
	return c.valueOfString(s, h)
}

// valueOfString is valueOfText for a string with hash h.
func (c *core) valueOfString(s string, h uint64) unsafe.Pointer {
	if g, slot := c.findString(s, h); g != nil {
		return (*refIn(g, slot)).block()
	}
	return nil
}

// findRef returns the group and the slot of a reference to a key with hash h, or nil.
func (c *core) findRef(r ref, h uint64) (g unsafe.Pointer, slot uintptr) {
	t := c.tableOf(h)
	last := t.groups() - 1
	tag := tagOf(h)
	for i, n := t.home(h), uintptr(0); n <= last; i, n = (i+1)&last, n+1 {
		g := t.group(i, refStride)
		w := *tagsAt(g)
		for match := matchTag(w, tag); match != 0; match &= match - 1 {
			if slot := slotOf(match); *refIn(g, slot) == r {
				return g, slot
			}
		}
		if w&passBit(tag) == 0 {
			break
		}
	}
	return nil, 0
}

// refStride is the stride of groups of references to keys: a line.
const refStride = tagBytes + slotsPerGroup*refBytes

// refIn returns the reference to a slot's key.
func refIn(g unsafe.Pointer, slot uintptr) *ref {
	return (*ref)(unsafe.Add(g, tagBytes+slot*refBytes))
}
