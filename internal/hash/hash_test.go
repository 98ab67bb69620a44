package hash

import (
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"strings"
	"testing"
)

// testSeed returns a seed whose hashes of less than longBytes are the same in each run.
func testSeed(n uint64) Seed {
	return Seed{n * 0x9E3779B97F4A7C15, n*0xD1B54A32D192ED03 | 1, n*0x8CB92BA72F3D8DD7 | 1, maphash.MakeSeed()}
}

// Bytes, String and Words agree, and each byte and the length matter, at every length.
func TestEachByteMatters(t *testing.T) {
	s := testSeed(1)
	everyByteMatters(t, s)
	everyByteMatters(t, SeedOf(s.Numbers()))
}

func everyByteMatters(t *testing.T, s Seed) {
	for n := range 100 {
		b := []byte(strings.Repeat("\x00", n))
		h := s.Bytes(b)
		if got := s.String(string(b)); got != h {
			t.Errorf("%d bytes: String %#x, Bytes %#x", n, got, h)
		}
		if n >= 8 && n <= 16 && s.Words(0, 0, n) != h {
			t.Errorf("%d bytes: Words %#x, Bytes %#x", n, s.Words(0, 0, n), h)
		}
		seen := map[uint64]bool{h: true, s.Bytes(append(b, 0)): true}
		for i := range b {
			b[i] = 1
			seen[s.Bytes(b)] = true
			b[i] = 0
		}
		if len(seen) != n+2 {
			t.Errorf("%d of %d hashes differ at %d bytes", len(seen), n+2, n)
		}
	}
}

// Hashes do not change with the byte order of the machine.
func TestHashesAreTheSameEverywhere(t *testing.T) {
	s := testSeed(1)
	kept := SeedOf(s.Numbers())
	const want = "4399a20c5dbdde4 b5282132a07e116e cbcb8f9c6ddc7b77 f1092e4abdc41896 b52eaba20eaf9bba ae43a5b5dc4a1535 fb53228f70615e06"
	got := fmt.Sprintf("%x %x %x %x %x %x %x", s.Uint64(5), s.String(""), s.String("ab"), s.String("abcde"), s.String("abcdefghijkl"), s.String("abcdefghijklmnopqrstuvwxyz"), kept.String(strings.Repeat("long", 50)))
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A bit of the key flips each bit of the hash with probability 1/2.
func TestAvalanche(t *testing.T) {
	const rounds = 4000
	for _, n := range []int{1, 3, 4, 8, 12, 16, 17, 40, 100, 1000} {
		for _, bit := range []int{0, 5, 8*n - 1} {
			var flips [64]int
			for r := range rounds {
				s := testSeed(uint64(r))
				s = SeedOf(s.Numbers())
				b := []byte(fmt.Sprintf("%0*d", n, r))[:n]
				h := s.Bytes(b)
				b[bit/8] ^= 1 << (bit % 8)
				for d := h ^ s.Bytes(b); d != 0; d &= d - 1 {
					flips[bits.TrailingZeros64(d)]++
				}
			}
			for i, f := range flips {
				if math.Abs(float64(f)-rounds/2) > 6*math.Sqrt(rounds)/2 {
					t.Errorf("%d bytes: bit %d of the key flips bit %d of the hash in %d of %d", n, bit, i, f, rounds)
				}
			}
		}
	}
}

// Sequential keys spread as random ones do, in the bits that choose a place.
func TestSequentialKeysSpread(t *testing.T) {
	const n, places = 1 << 16, 1 << 12
	s := testSeed(2)
	keys := map[string]func(i int) uint64{
		"Uint64":         func(i int) uint64 { return s.Uint64(uint64(i)) },
		"Uint64, pages":  func(i int) uint64 { return s.Uint64(uint64(i) << 12) },
		"Uint64, top":    func(i int) uint64 { return s.Uint64(uint64(i) << 48) },
		"Uint64, rev":    func(i int) uint64 { return s.Uint64(bits.Reverse64(uint64(i))) },
		"Uint64, gray":   func(i int) uint64 { return s.Uint64(uint64(i ^ i>>1)) },
		"String":         func(i int) uint64 { return s.String(fmt.Sprint("key", i)) },
		"String of 30 B": func(i int) uint64 { return s.String(fmt.Sprintf("%030d", i)) },
	}
	for name, hash := range keys {
		for _, shift := range []int{0, 7, 20, 25, 32, 52} {
			var count [places]int
			for i := range n {
				count[hash(i)>>shift%places]++
			}
			chi := 0.0
			for _, c := range count {
				d := float64(c) - n/places
				chi += d * d / (n / places)
			}
			// The expectation is places-1, the deviation sqrt(2*places).
			if math.Abs(chi-places) > 8*math.Sqrt(2*places) {
				t.Errorf("%s: chi squared %.0f at bit %d, want about %d", name, chi, shift, places)
			}
		}
	}
}

// Seeds differ.
func TestSeedsAreRandom(t *testing.T) {
	a, b := NewSeed(), NewSeed()
	long := strings.Repeat("a", longBytes)
	if a == b || a.String("a") == b.String("a") || a.Uint64(1) == b.Uint64(1) || a.String(long) == b.String(long) || Comparable(&a, 1.5) == Comparable(&b, 1.5) {
		t.Errorf("%v and %v", a, b)
	}
}

// Comparable is for ==: not for the bytes of a value, and no NaN is found again.
func TestComparable(t *testing.T) {
	s := NewSeed()
	if Comparable(&s, 0.0) != Comparable(&s, math.Copysign(0, -1)) {
		t.Error("the hashes of +0 and -0 differ")
	}
	//lint:ignore SA4000 each call has another hash
	if n := math.NaN(); Comparable(&s, n) == Comparable(&s, n) && Comparable(&s, n) == Comparable(&s, n) {
		t.Error("a NaN has one hash")
	}
}

var sink uint64

func BenchmarkString(b *testing.B) {
	for _, n := range []int{3, 8, 16, 32, 48, 64, 128} {
		key := strings.Repeat("x", n)
		b.Run(fmt.Sprintf("size=%d/own", n), func(b *testing.B) {
			s := NewSeed()
			for b.Loop() {
				sink += s.String(key)
			}
		})
		b.Run(fmt.Sprintf("size=%d/maphash", n), func(b *testing.B) {
			s := maphash.MakeSeed()
			for b.Loop() {
				sink += maphash.String(s, key)
			}
		})
	}
}
