// Hash: hashes of keys by their kind, with a seed for each map.
//
// A key type is plain if two keys are equal exactly when their bytes are: it has no padding, no
// blank fields and no floats. Plain keys and strings are hashed by their bytes, all others by
// hash/maphash.

package hashmap

import (
	"encoding/binary"
	"math"
	"reflect"
	"unsafe"

	"github.com/freehold-go/freehold/internal/hash"
)

// A keyKind says how keys are hashed and stored.
type keyKind uint8

const (
	otherKeys  keyKind = iota // hashed by hash.Comparable, stored in the slot
	plainKeys                 // hashed by their bytes, stored in the slot
	stringKeys                // hashed by their bytes, copied to a block
	narrowKeys                // plain keys whose hashes have only the bits of keep, in tests
)

// A hasher hashes keys of one type. Each hasher has a random seed.
type hasher struct {
	seed hash.Seed
	kind keyKind
	keep uint64 // bits of the hashes of strings and narrowKeys; all except in tests
}

// newHasher returns a hasher for keys of type K with a new seed.
func newHasher[K comparable]() hasher {
	return hasher{seed: hash.NewSeed(), kind: kindOf(reflect.TypeFor[K]()), keep: math.MaxUint64}
}

// kindOf returns the kind of keys of type t.
func kindOf(t reflect.Type) keyKind {
	switch {
	case t.Kind() == reflect.String:
		return stringKeys
	case hash.IsPlain(t):
		return plainKeys
	}
	return otherKeys
}

// hashOf returns the hash of k. If k is or has a NaN, the hash differs at each call.
func hashOf[K comparable](h *hasher, k *K) uint64 {
	if isShort[K]() && h.kind == plainKeys {
		return h.words(wordsOf(k))
	}
	return hashSlow(h, k)
}

// isShort reports whether plain keys of type K are hashed as one or two words. The
// compiler folds it to a constant.
func isShort[K any]() bool {
	switch unsafe.Sizeof(*new(K)) {
	case 1, 2, 4, 8, 16:
		return true
	}
	return false
}

// wordsOf returns k as the arguments of words.
//
// Precondition: isShort[K]().
func wordsOf[K any](k *K) (x, y uint64, n int) {
	p := unsafe.Pointer(k)
	switch unsafe.Sizeof(*k) {
	case 1:
		x = uint64(*(*byte)(p))
	case 2:
		x = uint64(binary.NativeEndian.Uint16((*[2]byte)(p)[:]))
	case 4:
		x = uint64(binary.NativeEndian.Uint32((*[4]byte)(p)[:]))
	case 8:
		x = binary.NativeEndian.Uint64((*[8]byte)(p)[:])
	case 16:
		b := (*[16]byte)(p)
		x, y, n = binary.NativeEndian.Uint64(b[:8]), binary.NativeEndian.Uint64(b[8:]), 16
	}
	return x, y, n
}

// hashSlow is hashOf for all keys.
func hashSlow[K comparable](h *hasher, k *K) uint64 {
	switch h.kind {
	case plainKeys, narrowKeys:
		if isShort[K]() {
			return h.words(wordsOf(k)) & h.keep
		}
		return h.bytes(unsafe.Slice((*byte)(unsafe.Pointer(k)), unsafe.Sizeof(*k)))
	case stringKeys:
		s := *(*string)(unsafe.Pointer(k))
		return h.bytes(unsafe.Slice(unsafe.StringData(s), len(s)))
	}
	return hash.Comparable(&h.seed, *k) & h.keep
}

// words returns the hash of a short plain key from the results of wordsOf.
func (h *hasher) words(x, y uint64, n int) uint64 { return h.seed.Words(x, y, n) }

// word is words for a key of 8 bytes.
func (h *hasher) word(k uint64) uint64 { return h.seed.Uint64(k) }

// bytes returns the hash of the bytes of a plain key or a string.
func (h *hasher) bytes(b []byte) uint64 { return h.seed.Bytes(b) & h.keep }
