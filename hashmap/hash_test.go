package hashmap

import (
	"fmt"
	"math"
	"math/bits"
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

func hashed[K comparable](h *hasher, k K) uint64 { return hashOf(h, &k) }

func TestEqualKeysHaveEqualHashes(t *testing.T) {
	f := newHasher[float64]()
	if hashed(&f, 0.0) != hashed(&f, math.Copysign(0, -1)) {
		t.Error("the hashes of +0 and -0 differ")
	}
	if n := math.NaN(); hashed(&f, n) == hashed(&f, n) && hashed(&f, n) == hashed(&f, n) {
		t.Error("a NaN has a fixed hash")
	}
	type padded struct {
		a byte
		b uint64
	}
	p := newHasher[padded]()
	noise := [2][16]byte{}
	for i := range noise[1] {
		noise[1][i] = 0xFF
	}
	x, y := (*padded)(unsafe.Pointer(&noise[0])), (*padded)(unsafe.Pointer(&noise[1]))
	x.a, x.b, y.a, y.b = 1, 2, 1, 2
	if hashOf(&p, x) != hashOf(&p, y) {
		t.Error("padding changes the hash")
	}
	s := newHasher[string]()
	for n := range 200 {
		text := strings.Repeat("x", n)
		if hashed(&s, text) != hashed(&s, strings.Clone(text)) || hashed(&s, text) != s.bytes([]byte(text)) {
			t.Errorf("the hash of a string of %d bytes depends on its address", n)
		}
	}
}

func TestHashersDiffer(t *testing.T) {
	a, b := newHasher[uint64](), newHasher[uint64]()
	if hashed(&a, uint64(1)) == hashed(&b, uint64(1)) {
		t.Error("two hashers agree")
	}
	c, d := newHasher[[3]int16](), newHasher[[3]int16]()
	if hashed(&c, [3]int16{}) == hashed(&d, [3]int16{}) {
		t.Error("two hashers agree")
	}
	e, f := newHasher[float64](), newHasher[float64]()
	if hashed(&e, 1.0) == hashed(&f, 1.0) {
		t.Error("two hashers agree")
	}
	g, h := newHasher[string](), newHasher[string]()
	for _, n := range []int{0, 16, 63, 64} {
		if text := strings.Repeat("x", n); hashed(&g, text) == hashed(&h, text) {
			t.Errorf("two hashers agree on a string of %d bytes", n)
		}
	}
}

// Regular keys spread evenly over each part of a hash that the map uses.
func TestHashesSpread(t *testing.T) {
	const n, cells = 1 << 14, 1 << 7
	keys := map[string]func(i uint64) uint64{
		"1":    func(i uint64) uint64 { return i },
		"8":    func(i uint64) uint64 { return i * 8 },
		"2^20": func(i uint64) uint64 { return i << 20 },
		"2^40": func(i uint64) uint64 { return i << 40 },
		"rev":  bits.Reverse64,
		"gray": func(i uint64) uint64 { return i ^ i>>1 },
	}
	parts := map[string]uint{"directory": 57, "tag": tagShift, "group": 25}
	for name, key := range keys {
		words, texts := newHasher[uint64](), newHasher[string]()
		for part, shift := range parts {
			var byWord, byText [cells]float64
			for i := range uint64(n) {
				byWord[hashed(&words, key(i))>>shift%cells]++
				byText[hashed(&texts, fmt.Sprintf("%016x", key(i)))>>shift%cells]++
			}
			for how, counts := range map[string][cells]float64{"word": byWord, "text": byText} {
				chi := 0.0
				for _, c := range counts {
					chi += (c - n/cells) * (c - n/cells) / (n / cells)
				}
				// 127 degrees of freedom: beyond 400 is less likely than 1 in 10^29.
				if chi > 400 {
					t.Errorf("%s by steps of %s: %s has chi^2 %.0f", how, name, part, chi)
				}
			}
		}
	}
}
