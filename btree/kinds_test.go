package btree

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// ordered is a kind of New.
func ordered[K cmp.Ordered, V any](name string, keys int, key func(i int) K, value func(i int) V) kind[K, V] {
	open := func(a freehold.Allocator, o *Options) *Map[K, V] { return New[K, V](a, o) }
	return kind[K, V]{name, keys, key, value, open, cmp.Compare[K]}
}

// byFunc is a kind of NewFunc.
func byFunc[K, V any](name string, keys int, key func(i int) K, value func(i int) V, compare func(a, b K) int) kind[K, V] {
	open := func(a freehold.Allocator, o *Options) *Map[K, V] { return NewFunc[K, V](a, compare, o) }
	return kind[K, V]{name, keys, key, value, open, compare}
}

func asUint64(i int) uint64 { return uint64(i)*0x100000001 + 5 }

// named are types whose kind counts, not their name.
type (
	namedInt    int32
	namedString string
)

type bytes3 [3]byte

func (b bytes3) number() int { return int(b[0])<<16 | int(b[1])<<8 | int(b[2]) }

func asBytes3(i int) bytes3 { return bytes3{byte(i >> 16), byte(i >> 8), byte(i)} }

func compareBytes3(a, b bytes3) int { return a.number() - b.number() }

// Wide types, with a number in their last bytes.
type (
	bytes24   [3]uint64
	bytes200  [25]uint64
	bytes2000 [250]uint64
)

func as24(i int) bytes24 { return bytes24{1, 2, uint64(i)} }
func as200(i int) (b bytes200) {
	b[0], b[24] = uint64(i), uint64(i)
	return b
}
func compare200(a, b bytes200) int { return cmp.Compare(a[24], b[24]) }
func as2000(i int) (b bytes2000) {
	b[0], b[249] = uint64(i), uint64(i)
	return b
}

// textKeys are in order.
var textKeys = func() []string {
	keys := []string{"", "\x00", "\x00\x00"}
	for i := range 3000 {
		s := fmt.Sprintf("%04d", i)
		switch i % 4 {
		case 1:
			s += "0123"
		case 2:
			s += "/0123456789/0123456789"
		case 3:
			s = "00000000/" + s
		}
		keys = append(keys, s)
	}
	slices.Sort(keys)
	return keys
}()

func TestKinds(t *testing.T) {
	number := func(i int) uint64 { return uint64(i) }
	t.Run("ordered", func(t *testing.T) {
		testKind(t, ordered("uint64", 1<<16, asUint64, number))
		testKind(t, ordered("uint64,uint32", 1<<16, asUint64, func(i int) uint32 { return uint32(i) }))
		testKind(t, ordered("uint64,set", 1<<16, asUint64, func(i int) struct{} { return struct{}{} }))
		testKind(t, ordered("int64", 1<<16, func(i int) int64 { return int64(i) - 1<<15 }, number))
		testKind(t, ordered("int", 1<<16, func(i int) int { return i - 1<<15 }, number))
		testKind(t, ordered("namedInt", 1<<16, func(i int) namedInt { return namedInt(i)*3 - 1<<15 }, number))
		testKind(t, ordered("uint32", 1<<16, func(i int) uint32 { return uint32(i) << 16 }, func(i int) uint32 { return uint32(i) }))
		testKind(t, ordered("int16", 1<<16, func(i int) int16 { return int16(i - 1<<15) }, number))
		testKind(t, ordered("uint8", 1<<8, func(i int) uint8 { return uint8(i) }, number))
		testKind(t, ordered("uint8,set", 1<<8, func(i int) uint8 { return uint8(i) }, func(i int) struct{} { return struct{}{} }))
		testKind(t, ordered("uintptr", 1<<16, func(i int) uintptr { return uintptr(i) }, number))
		testKind(t, ordered("float64", 1<<16, func(i int) float64 { return float64(i)/7 - 1000 }, number))
		testKind(t, ordered("float32", 1<<16, func(i int) float32 { return float32(i - 1<<15) }, number))
	})
	t.Run("values", func(t *testing.T) {
		testKind(t, ordered("1", 1<<16, asUint64, func(i int) uint8 { return uint8(i) }))
		testKind(t, ordered("3", 1<<16, asUint64, asBytes3))
		testKind(t, ordered("24", 1<<16, asUint64, as24))
		testKind(t, ordered("200", 1<<12, asUint64, as200))
		testKind(t, ordered("2000", 1<<10, asUint64, as2000))
	})
	t.Run("func", func(t *testing.T) {
		testKind(t, byFunc("0", 1, func(i int) struct{} { return struct{}{} }, number, func(a, b struct{}) int { return 0 }))
		testKind(t, byFunc("0,set", 1, func(i int) struct{} { return struct{}{} }, func(i int) [0]int { return [0]int{} }, func(a, b struct{}) int { return 0 }))
		testKind(t, byFunc("3", 1<<16, asBytes3, number, compareBytes3))
		testKind(t, byFunc("24", 1<<16, as24, number, func(a, b bytes24) int { return cmp.Compare(a[2], b[2]) }))
		testKind(t, byFunc("200", 1<<12, as200, number, compare200))
		testKind(t, byFunc("2000,2000", 1<<9, as2000, as2000, func(a, b bytes2000) int { return cmp.Compare(a[249], b[249]) }))
		testKind(t, byFunc("reversed", 1<<16, func(i int) uint64 { return uint64(1<<16 - i) }, number, func(a, b uint64) int { return cmp.Compare(b, a) }))
	})
	t.Run("text", func(t *testing.T) {
		testKind(t, ordered("string", len(textKeys), func(i int) string { return textKeys[i] }, number))
		testKind(t, ordered("named", len(textKeys), func(i int) namedString { return namedString(textKeys[i]) }, as24))
	})
}

// FuzzMap runs its input as a program on a few kinds.
func FuzzMap(f *testing.F) {
	f.Add(randomProgram(1, 30))
	f.Add([]byte{0, 0, 0, 255, 0, 1, 0, 255, 5, 0, 0, 200, 16, 0, 0, 3})
	f.Fuzz(func(t *testing.T, prog []byte) {
		prog = prog[:min(len(prog), 400)]
		number := func(i int) uint64 { return uint64(i) }
		newModel(t, ordered("uint64", 1<<12, asUint64, number), alloctest.New(t), len(prog)%8 < 4).run(prog)
		newModel(t, byFunc("200", 1<<9, as200, number, compare200), alloctest.New(t), len(prog)%8 < 4).run(prog)
		newModel(t, ordered("string", len(textKeys), func(i int) string { return textKeys[i] }, number), alloctest.New(t), len(prog)%8 < 4).run(prog)
	})
}
