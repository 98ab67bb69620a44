// Hash: 64 bits from a key and a random seed.
//
//	fold(x, y) = high half of x*y ^ low half of x*y      128 bits in all
//
//	8 B as a word  fold with the seed, twice
//	0 to 16 B      two words, which may overlap -> fold with the seed -> fold
//	17 to 63 B     16 B at a time -> fold with the seed and what came before -> fold
//	more           hash/maphash: the processor's AES instructions pay for the call then
//
// The scheme is wyhash's (Wang Yi, public domain), with the constants replaced by
// the seed. hash/maphash is as good, and costs a call into the runtime: BenchmarkString
// has both.

// Package hash hashes the keys of containers, with a random seed for each container.
package hash

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"unsafe"
)

// longBytes is the length from which maphash is faster.
const longBytes = 64

// Seed selects a hash function. Keys that collide under one seed collide under another by
// chance only. So without the seed, an attacker cannot make keys that collide. This is not
// proven. Never show a seed or a hash.
type Seed struct {
	a, b, c uint64 // b and c are odd
	maphash maphash.Seed
}

// NewSeed returns a random seed.
func NewSeed() Seed { return SeedFrom(rand.Uint64) }

// SeedFrom returns a seed of numbers that next returns. Equal numbers give words, and strings
// of fewer than 64 bytes, equal hashes, for tests.
func SeedFrom(next func() uint64) Seed {
	return Seed{next(), next() | 1, next() | 1, maphash.MakeSeed()}
}

// SeedOf returns the seed of an earlier process, whose Numbers are given. Numbers of rand.Uint64 make
// a new one. Its hashes are the same in every process, so they may be kept in files. For that it
// hashes 64 bytes and more without the processor's AES instructions, which takes longer.
func SeedOf(numbers [3]uint64) Seed {
	return Seed{a: numbers[0], b: numbers[1] | 1, c: numbers[2] | 1}
}

// Numbers returns the numbers of a seed of SeedOf.
func (s *Seed) Numbers() [3]uint64 { return [3]uint64{s.a, s.b, s.c} }

// Uint64 returns the hash of v. All its bits are equally good.
func (s *Seed) Uint64(v uint64) uint64 { return s.Words(v, 0, 0) }

// String returns the hash of v. All its bits are equally good.
func (s *Seed) String(v string) uint64 {
	return s.Bytes(unsafe.Slice(unsafe.StringData(v), len(v)))
}

// Bytes returns what String returns for the same bytes.
func (s *Seed) Bytes(v []byte) uint64 {
	n := len(v)
	var x, y uint64
	switch {
	case n > 16:
		return s.long(v)
	case n >= 8:
		x, y = binary.LittleEndian.Uint64(v), binary.LittleEndian.Uint64(v[n-8:])
	case n >= 4:
		x, y = uint64(binary.LittleEndian.Uint32(v)), uint64(binary.LittleEndian.Uint32(v[n-4:]))
	case n > 0:
		x = uint64(v[0])<<16 | uint64(v[n/2])<<8 | uint64(v[n-1])
	}
	return s.Words(x, y, n)
}

// Words returns what Bytes returns for n bytes, if x are the first 8 of them and y the
// last, as little-endian numbers, and n is 8 to 16. For 0 and 0 it is what Uint64 returns
// for x.
func (s *Seed) Words(x, y uint64, n int) uint64 {
	return fold(fold(x^s.a, y^s.b)^uint64(n), s.c)
}

// long is Bytes of more than 16 bytes.
func (s *Seed) long(v []byte) uint64 {
	if len(v) >= longBytes && s.maphash != (maphash.Seed{}) {
		return maphash.Bytes(s.maphash, v)
	}
	n, last := uint64(len(v)), v[len(v)-16:]
	x := s.a
	for len(v) > 16 {
		x = fold(x^binary.LittleEndian.Uint64(v), s.b^binary.LittleEndian.Uint64(v[8:]))
		v = v[16:]
	}
	x = fold(x^binary.LittleEndian.Uint64(last), s.b^binary.LittleEndian.Uint64(last[8:]))
	return fold(x^n, s.c)
}

// Comparable returns a hash of v: the same for all values that == says are equal, and
// another one each time for a NaN.
func Comparable[T comparable](s *Seed, v T) uint64 { return maphash.Comparable(s.maphash, v) }

// IsPlain reports whether values of type t are equal exactly if their bytes are.
func IsPlain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	case reflect.Array:
		return t.Len() == 0 || IsPlain(t.Elem())
	case reflect.Struct:
		sum := uintptr(0)
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Name == "_" || !IsPlain(f.Type) {
				return false
			}
			sum += f.Type.Size()
		}
		return sum == t.Size() // else there is padding
	}
	return false
}

func fold(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	return hi ^ lo
}
