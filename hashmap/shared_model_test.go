package hashmap

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/alloctest"
)

// sharedModel runs a program on a Shared and on a Go map, and compares them after each step.
// Each three bytes are an operation and its key.
type sharedModel[K comparable, V any] struct {
	t     testing.TB
	m     *Shared[K, V]
	want  map[K]V
	key   func(n int) K
	value func(n int) V
	same  func(a, b V) bool
	steps int
}

func (s *sharedModel[K, V]) run(prog []byte) {
	for ; len(prog) >= 3; prog = prog[3:] {
		s.steps++
		s.step(prog[0], int(binary.LittleEndian.Uint16(prog[1:])))
		if s.steps%64 == 0 {
			s.compare()
		}
	}
	s.compare()
}

func (s *sharedModel[K, V]) step(op byte, arg int) {
	s.t.Helper()
	k := s.key(arg)
	old, there := s.want[k]
	v := s.value(s.steps)
	switch op % 16 {
	case 0, 1, 2, 3, 4:
		if err := s.m.Put(k, v); err != nil {
			s.t.Fatal(err)
		}
		s.want[k] = v
	case 5, 6, 7:
		if got := s.m.Delete(k); got != there {
			s.t.Fatalf("Delete(%v) = %t, want %t", k, got, there)
		}
		delete(s.want, k)
	case 8:
		got, found, err := s.m.PutIfAbsent(k, v)
		if err != nil || found != there || (there && !s.same(got, old)) || (!there && !s.same(got, v)) {
			s.t.Fatalf("PutIfAbsent(%v) = %v, %t, %v; want %v, %t", k, got, found, err, old, there)
		}
		if !there {
			s.want[k] = v
		}
	case 9, 10:
		err := s.m.Update(k, func(at *V, found bool) {
			if found != there || (there && !s.same(*at, old)) {
				s.t.Errorf("Update(%v) has %v, %t; want %v, %t", k, *at, found, old, there)
			}
			*at = v
		})
		if err != nil {
			s.t.Fatal(err)
		}
		s.want[k] = v
	case 11:
		if arg%512 == 0 {
			s.m.Clear()
			clear(s.want)
		}
	case 12:
		if arg%64 == 0 {
			if err := s.m.Grow(arg / 16); err != nil {
				s.t.Fatal(err)
			}
		}
	case 13:
		keep, asked := arg%2 == 0, false
		got := s.m.DeleteIf(k, func(v V) bool {
			if asked = true; !s.same(v, old) {
				s.t.Errorf("DeleteIf(%v) has %v; want %v", k, v, old)
			}
			return !keep
		})
		if got != (there && !keep) || asked != there {
			s.t.Fatalf("DeleteIf(%v) = %t, and has asked: %t", k, got, asked)
		}
		if got {
			delete(s.want, k)
		}
	}
	got, found := s.m.Get(k)
	if want, there := s.want[k]; found != there || (there && !s.same(got, want)) {
		s.t.Fatalf("Get(%v) = %v, %t; want %v, %t", k, got, found, want, there)
	}
}

// compare compares all entries, and checks the invariants.
func (s *sharedModel[K, V]) compare() {
	s.t.Helper()
	if n := s.m.Len(); n != len(s.want) {
		s.t.Fatalf("Len is %d, want %d", n, len(s.want))
	}
	seen := 0
	for k, v := range s.m.All() {
		if want, there := s.want[k]; !there || !s.same(v, want) {
			s.t.Fatalf("All has %v with %v, want %v, %t", k, v, want, there)
		}
		seen++
	}
	if seen != len(s.want) {
		s.t.Fatalf("All has %d entries, want %d", seen, len(s.want))
	}
	s.m.checkAll()
}

type (
	tripleValue struct {
		a, b uint64
		c    uint32
	}
	paddedKey struct {
		a uint8
		b uint32
	}
)

// sharedPrograms run a program on maps of many types of K and V.
var sharedPrograms = map[string]func(t testing.TB, prog []byte, narrow uint64){
	"uint64 to uint64": func(t testing.TB, prog []byte, narrow uint64) {
		runShared(t, prog, narrow, func(n int) uint64 { return uint64(n) }, func(n int) uint64 { return uint64(n) << 40 })
	},
	"uint8 to nothing": func(t testing.TB, prog []byte, narrow uint64) {
		runShared(t, prog, narrow, func(n int) uint8 { return uint8(n) }, func(int) struct{} { return struct{}{} })
	},
	"nothing to uint16": func(t testing.TB, prog []byte, narrow uint64) {
		runShared(t, prog, narrow, func(int) struct{} { return struct{}{} }, func(n int) uint16 { return uint16(n) })
	},
	"nothing to nothing": func(t testing.TB, prog []byte, narrow uint64) {
		runShared(t, prog, narrow, func(int) [0]int { return [0]int{} }, func(int) struct{} { return struct{}{} })
	},
	"[3]byte to 24 B": func(t testing.TB, prog []byte, narrow uint64) {
		runShared(t, prog, narrow, func(n int) [3]byte { return [3]byte{byte(n), byte(n >> 8), 7} },
			func(n int) tripleValue { return tripleValue{uint64(n), ^uint64(n), uint32(n)} })
	},
	"padded to 200 B": func(t testing.TB, prog []byte, narrow uint64) {
		runShared(t, prog, narrow, func(n int) paddedKey { return paddedKey{uint8(n), uint32(n >> 3)} },
			func(n int) (v [200]byte) { v[0], v[199] = byte(n), byte(n>>8); return v })
	},
	"float64 to int8": func(t testing.TB, prog []byte, narrow uint64) {
		runShared(t, prog, narrow, func(n int) float64 { return float64(n%512) / 2 }, func(n int) int8 { return int8(n) })
	},
	"string to 24 B": func(t testing.TB, prog []byte, narrow uint64) {
		runShared(t, prog, narrow, textKey, func(n int) tripleValue { return tripleValue{uint64(n), ^uint64(n), uint32(n)} })
	},
	"uint64 to 128 B": func(t testing.TB, prog []byte, narrow uint64) {
		runShared(t, prog, narrow, func(n int) uint64 { return uint64(n) }, func(n int) large { return largeOf(uint64(n)) })
	},
	"string to 256 B": func(t testing.TB, prog []byte, narrow uint64) {
		runShared(t, prog, narrow, textKey, func(n int) (v [64]float32) { v[0], v[63] = float32(n), -float32(n); return v })
	},
	"string to string": func(t testing.TB, prog []byte, narrow uint64) {
		runShared(t, prog, narrow, textKey, func(n int) string { return textKey(n % 700) })
	},
	"uint32 to []byte": func(t testing.TB, prog []byte, narrow uint64) {
		m := newSharedModel(t, narrow, func(n int) uint32 { return uint32(n) }, func(n int) []byte { return []byte(textKey(n % 700)) })
		m.same = func(a, b []byte) bool { return string(a) == string(b) }
		m.run(prog)
	},
}

// textKey returns the text of a number, of 0 to 700 bytes.
func textKey(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n) + strings.Repeat("x", max(0, n%1024-323))
}

func runShared[K, V comparable](t testing.TB, prog []byte, narrow uint64, key func(int) K, value func(int) V) {
	newSharedModel(t, narrow, key, value).run(prog)
}

func newSharedModel[K comparable, V any](t testing.TB, narrow uint64, key func(int) K, value func(int) V) *sharedModel[K, V] {
	m := NewShared[K, V](alloctest.New(t), nil)
	t.Cleanup(m.Close)
	m.hasher.narrow = narrow
	return &sharedModel[K, V]{t: t, m: m, want: map[K]V{}, key: key, value: value,
		same: func(a, b V) bool { return any(a) == any(b) }}
}

// narrowHashes are bits that hashes do without, so that keys collide.
var narrowHashes = map[string]uint64{
	"none":           0,
	"directory":      0xFFFFFF << 40,
	"group":          0xFFFFFFFF,
	"tag":            0x7F << tagShift,
	"all":            ^uint64(0),
	"all but 3 bits": ^uint64(7<<61 | 1<<31 | 1<<tagShift),
}

func TestSharedIsAMap(t *testing.T) {
	steps := 6000
	if testing.Short() {
		steps = 1500
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for name, run := range sharedPrograms {
		for bits, narrow := range narrowHashes {
			prog := make([]byte, 3*steps)
			for i := range prog {
				prog[i] = byte(rng.Uint32())
			}
			for i := 2; i < len(prog); i += 3 { // 2048 keys, then fewer
				prog[i] &= 7 >> (3 * i / len(prog))
			}
			t.Run(name+", collisions: "+bits, func(t *testing.T) { run(t, prog, narrow) })
		}
	}
}

func FuzzShared(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 1, 0, 5, 0, 0}, uint8(0))
	f.Add([]byte("0 10 20 30 45 05 19 09 0;0 <@ "), uint8(1))
	f.Fuzz(func(t *testing.T, prog []byte, bits uint8) {
		prog = prog[:min(len(prog), 3*500)]
		narrow := []uint64{0, 0xFFFFFF << 40, 0xFFFFFFFF, 0x7F << tagShift, ^uint64(0), ^uint64(1 << 63)}[bits%6]
		for name, run := range sharedPrograms {
			t.Run(name, func(t *testing.T) { run(t, prog, narrow) })
		}
	})
}
