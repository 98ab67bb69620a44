package hashmap

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

func TestKeyKinds(t *testing.T) {
	type name string
	type padded struct {
		a byte
		b uint32
	}
	type blank struct{ a, _ uint32 }
	type packed struct {
		a, b uint16
		c    [2]uint32
		d    [0]float64
		e    int32
	}
	type tail struct {
		a uint64
		b byte
	}
	tests := []struct {
		t    reflect.Type
		want keyKind
	}{
		{reflect.TypeFor[uint64](), plainKeys},
		{reflect.TypeFor[bool](), plainKeys},
		{reflect.TypeFor[uintptr](), plainKeys},
		{reflect.TypeFor[struct{}](), plainKeys},
		{reflect.TypeFor[[3]int8](), plainKeys},
		{reflect.TypeFor[struct{ a, b uint32 }](), plainKeys},
		{reflect.TypeFor[string](), stringKeys},
		{reflect.TypeFor[name](), stringKeys},
		{reflect.TypeFor[padded](), otherKeys},      // padding between fields
		{reflect.TypeFor[tail](), otherKeys},        // padding at the end
		{reflect.TypeFor[[2]tail](), otherKeys},     // the same, in an array
		{reflect.TypeFor[blank](), otherKeys},       // == ignores blank fields
		{reflect.TypeFor[float64](), otherKeys},     // -0 == +0
		{reflect.TypeFor[[1]float32](), otherKeys},  // the same
		{reflect.TypeFor[complex128](), otherKeys},  // the same
		{reflect.TypeFor[[0]float64](), plainKeys},  // no bytes
		{reflect.TypeFor[packed](), packedKind()},   // zero-size field with alignment 8
		{reflect.TypeFor[[2]struct{}](), plainKeys}, // no bytes
	}
	for _, test := range tests {
		if got := kindOf(test.t); got != test.want {
			t.Errorf("%v is of kind %d, want %d", test.t, got, test.want)
		}
	}
}

// packedKind returns the kind of a struct whose zero-size field of 8 bytes alignment
// leads to padding where uint64 is aligned to 8.
func packedKind() keyKind {
	if unsafe.Alignof(float64(0)) == 4 {
		return plainKeys
	}
	return otherKeys
}

func TestHashOf(t *testing.T) {
	type padded struct {
		a byte
		b uint64
	}
	p := newHasher[padded]()
	var x, y padded
	fillPadding(&y, 0xFF)
	x.a, x.b, y.a, y.b = 1, 2, 1, 2
	if hashOf(&p, &x) != hashOf(&p, &y) {
		t.Error("padding changes the hash")
	}
	a, b, k := newHasher[string](), newHasher[string](), "key"
	if same := strings.Clone(k); hashOf(&a, &k) != hashOf(&a, &same) || hashOf(&a, &k) != a.bytes([]byte(k)) {
		t.Error("the hash of a string depends on its address")
	}
	if hashOf(&a, &k) == hashOf(&b, &k) {
		t.Error("two hashers agree")
	}
}

// Keys of one or two words have one hash, whoever asks, and each of their bytes counts.
func TestHashOfShortKeys(t *testing.T) {
	testShort(t, func(b []byte) uint8 { return b[0] })
	testShort(t, func(b []byte) [2]byte { return [2]byte(b) })
	testShort(t, func(b []byte) [4]byte { return [4]byte(b) })
	testShort(t, func(b []byte) [8]byte { return [8]byte(b) })
	testShort(t, func(b []byte) [16]byte { return [16]byte(b) })
	if isShort[[3]byte]() || isShort[[2]float64]() && newHasher[[2]float64]().kind == plainKeys {
		t.Error("keys that are not short are")
	}
}

func testShort[K comparable](t *testing.T, key func(b []byte) K) {
	h, b := newHasher[K](), make([]byte, 16)
	seen := map[uint64]bool{}
	for i := range unsafe.Sizeof(*new(K)) {
		for _, v := range []byte{0, 1, 0x80, 0xFF} {
			b[i] = v
			k := key(b)
			hash := hashOf(&h, &k)
			if hashSlow(&h, &k) != hash || h.words(wordsOf(&k)) != hash {
				t.Errorf("%T has several hashes", k)
			}
			if seen[hash] != (v == 0 && i > 0) {
				t.Errorf("%v has the hash of another", k)
			}
			seen[hash] = true
		}
		b[i] = 0
	}
}
