// Owned: strings, bytes and large values, which maps keep as copies in blocks of their own.
//
//	slot of a string key    | ref |--> | value | key's bytes |     pair.go if both are text
//	slot of a text value    | ref |--> | value's bytes |
//
//	ref                     | length 19 bits | address / 8, 45 bits |
//
// So a search reads the line of tags and references and then the line of the key, where
// the value of a Map is too. A Shared has text values and keys apart: shared_text.go. A
// length of 19 ones says that 8 bytes with the length precede the bytes. No bytes and no
// value take no block.

package hashmap

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
)

// A textKind says which text a K or V is.
type textKind uint8

const (
	noText textKind = iota
	isString
	isBytes // of values only
	isLarge // of values only
)

// largeBytes is the size from which on a value is large, and is stored as the text of its bytes.
// In a group it would take two to five times its size, since slots are free, and be copied
// whenever a table grows.
const largeBytes = 128

func textKindOf(t reflect.Type) textKind {
	switch {
	case t.Kind() == reflect.String:
		return isString
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return isBytes
	}
	return noText
}

// kindsOf returns a hasher for K, and which text V is. It panics, in the name of call, if K
// or V holds a Go pointer or is too large.
func kindsOf[K comparable, V any](call string) (h hasher, values textKind) {
	h, values = newHasher[K](), textKindOf(reflect.TypeFor[V]())
	if h.kind != stringKeys {
		arg.PointerFree(call, "K=", freehold.PointerFree[K]())
	}
	if values == noText {
		arg.PointerFree(call, "V=", freehold.PointerFree[V]())
	}
	if n := max(unsafe.Sizeof(*new(K)), unsafe.Sizeof(*new(V))); n > maxBytes {
		arg.Panicf(call, "a K or V of %d bytes, want %d or less", n, maxBytes)
	}
	return h, values
}

// textOf returns the bytes of v.
func textOf[T any](kind textKind, v *T) string {
	switch kind {
	case isBytes:
		b := *(*[]byte)(unsafe.Pointer(v))
		return unsafe.String(unsafe.SliceData(b), len(b))
	case isLarge:
		return unsafe.String((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
	}
	return *(*string)(unsafe.Pointer(v))
}

// copyOf returns a T with a copy of text.
func copyOf[T any](kind textKind, text string) (v T) {
	switch kind {
	case isBytes:
		*(*[]byte)(unsafe.Pointer(&v)) = []byte(text)
	case isLarge:
		v = *(*T)(unsafe.Pointer(unsafe.StringData(text)))
	default:
		*(*string)(unsafe.Pointer(&v)) = strings.Clone(text)
	}
	return v
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
	r, err := refAt(p)
	if err != nil {
		return 0, err
	}
	n := len(s)
	to := unsafe.Slice((*byte)(unsafe.Add(p, head)), blockBytes(0, n))
	if n >= longBytes {
		binary.NativeEndian.PutUint64(to, uint64(n))
		to, n = to[lengthBytes:], longBytes
	}
	copy(to, s)
	return r | ref(n)<<refAddrBits, nil
}

// refAt returns a reference to the block at p, without a length.
func refAt(p unsafe.Pointer) (ref, error) {
	addr := uint64(uintptr(p)) / blockAlign
	if addr >= 1<<refAddrBits {
		return 0, fmt.Errorf("%w: a block at %#x is beyond 48 bits of address", freehold.ErrOutOfMemory, uintptr(p))
	}
	return ref(addr), nil
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

// lookUp returns the reference to a string key's block, its hash, and whether the map has it.
//
// The first group is searched without a call, as in Get, if the key has 8 to 16 bytes.
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

// findRef returns the group and the slot, in t, of a reference to a key with hash h, or nil.
func (c *core) findRef(t table, r ref, h uint64) (g unsafe.Pointer, slot uintptr) {
	p := newProbe(t.base(), t.groups(), c.stride, t.home(h), h)
	for p.next() {
		if *refIn(p.group, p.slot) == r {
			return p.group, p.slot
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
