// Text: strings, bytes and large values, which maps copy to blocks.
//
//	slot of a string key    | ref |--> | value | key's bytes |
//	slot of a text value    | ref |--> | value's bytes |
//	slot of both, in a Map  | ref |--> | key's bytes | value's bytes |      a pair
//
//	ref            | length 19 bits | address / 8, 45 bits |
//	ref of a pair  | value's length 10 bits | key's length 9 bits | address / 8, 45 bits |
//
// A search reads the line of tags and references and then the line of the key, which has the
// value of a Map too. The slots of a Shared refer to key and value apart. A length that does not
// fit is stored in 8 bytes in front of the bytes; the reference then has all ones. The block of a
// pair begins with both lengths if one of them does not fit. No bytes and no value take no block.

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

// A textKind says how a K or V is stored: in the slot (noText), or as text in a block.
type textKind uint8

const (
	noText textKind = iota
	isString
	isBytes // of values only
	isLarge // of values; in a Frozen of keys too
)

// largeBytes is the size from which on a value is large: its bytes are stored as text. In a group
// it would take two to five times its size, since some slots are free, and growth would copy it.
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

// kindsOf returns a hasher for K and the textKind of V. It panics in the name of call if K or V has
// a Go pointer or is too large.
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

// textOf returns the bytes of v, without a copy.
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

// isShortText reports whether s has 8 to 32 bytes: then probeText finds it.
func isShortText(s string) bool { return uint(len(s)-8) <= 24 }

// hidden returns s, for probeText. It hides s from the escape analysis, which does not know that
// assembly keeps no argument, so that the bytes of a key may be on the stack.
func hidden(s string) string {
	return unsafe.String((*byte)(pointer(uintptr(unsafe.Pointer(unsafe.StringData(s))))), len(s))
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

// viewOf returns text, with its memory, as a string or []byte.
func viewOf[T any](kind textKind, text string) (v T) {
	if kind == isBytes {
		*(*[]byte)(unsafe.Pointer(&v)) = unsafe.Slice(unsafe.StringData(text), len(text))
	} else {
		*(*string)(unsafe.Pointer(&v)) = text
	}
	return v
}

// A ref refers to a block: a head, whose size is the same for all blocks of a map, and bytes.
type ref uint64

const (
	refBytes    = 8
	refAddrBits = 45
	blockAlign  = 8
	longBytes   = 1<<(64-refAddrBits) - 1 // from this length on, the block has the length
	lengthBytes = 8
)

// block returns the block's address.
func (r ref) block() unsafe.Pointer {
	addr := uintptr(r & (1<<refAddrBits - 1) * blockAlign)
	return *(*unsafe.Pointer)(unsafe.Pointer(&addr))
}

// text returns the bytes behind the head, without a copy.
func (r ref) text(head uintptr) string {
	p := unsafe.Add(r.block(), head)
	n := int(r >> refAddrBits)
	if n == longBytes {
		n = int(binary.NativeEndian.Uint64(unsafe.Slice((*byte)(p), lengthBytes)))
		p = unsafe.Add(p, lengthBytes)
	}
	return unsafe.String((*byte)(p), n)
}

const (
	pairKeyBits  = 9
	pairKeyLimit = 1<<pairKeyBits - 1
	valueShift   = refAddrBits + pairKeyBits
	valueLimit   = 1<<(64-valueShift) - 1
)

// pairLengths returns the lengths of a pair's key and value, and the size of the head before them.
func (r ref) pairLengths() (key, value, head int) {
	key, value = int(r>>refAddrBits)&pairKeyLimit, int(r>>valueShift)
	if key == pairKeyLimit {
		b := unsafe.Slice((*byte)(r.block()), 2*lengthBytes)
		key, value = int(binary.NativeEndian.Uint64(b)), int(binary.NativeEndian.Uint64(b[lengthBytes:]))
		head = 2 * lengthBytes
	}
	return key, value, head
}

// pairKey returns the key's bytes, without a copy.
func (r ref) pairKey() string {
	key, _, head := r.pairLengths()
	return unsafe.String((*byte)(unsafe.Add(r.block(), head)), key)
}

// pairValue returns the value's bytes, without a copy.
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

// A memory allocates and frees blocks of the parent.
type memory interface {
	alloc(size uintptr, align int) (unsafe.Pointer, error)
	free(p unsafe.Pointer, size uintptr)
}

// newBlock returns a block with a head, whose contents are undefined, and the bytes of s.
func newBlock(m memory, head uintptr, align int, s string) (ref, error) {
	size := blockBytes(head, len(s))
	if size == 0 {
		return 0, nil
	}
	p, err := m.alloc(size, max(align, blockAlign))
	if err != nil {
		return 0, err
	}
	r, err := refTo(p, head, s)
	if err != nil {
		m.free(p, size)
	}
	return r, err
}

// freeBlock frees the block behind r, if there is one.
func freeBlock(m memory, r ref, head uintptr) {
	if size := blockBytes(head, len(r.text(head))); size > 0 {
		m.free(r.block(), size)
	}
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

// blockBytes returns the size of a block with a head and n bytes.
func blockBytes(head uintptr, n int) uintptr {
	if n >= longBytes {
		head += lengthBytes
	}
	return head + uintptr(n)
}
