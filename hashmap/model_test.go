package hashmap

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// A subject is a Map or a Shared.
type subject[K comparable, V any] interface {
	Get(k K) (V, bool)
	Put(k K, v V) error
	PutIfAbsent(k K, v V) (V, bool, error)
	Update(k K, fn func(v *V, found bool)) error
	Compute(k K, f func(v *V, found bool) freehold.Change) (V, bool, error)
	Delete(k K) bool
	All() iter.Seq2[K, V]
	Len() int
	Clear()
	Grow(n int) error
	Close()
}

// A model is a map beside a Go map that has the same entries. Keys and values are made
// from numbers.
type model[K comparable, V any] struct {
	t      testing.TB
	m      subject[K, V]
	parent *freehold.Tagged
	want   map[K]V
	key    func(n int) K
	value  func(n int) V
	equal  func(a, b V) bool
	fresh  int
}

// run reads prog as a program: each three bytes are an operation and its arguments.
func (m *model[K, V]) run(prog []byte) {
	for n := 0; len(prog) >= 3; prog, n = prog[3:], n+1 {
		m.step(prog[0], int(prog[1])|int(prog[2])<<8)
		if n%32 == 0 {
			m.verify()
		}
	}
	m.verify()
}

func (m *model[K, V]) step(op byte, arg int) {
	hugeOf(m.m).needed().wait() // so that a program has one course
	k := m.key(arg)
	m.fresh++
	v := m.value(m.fresh)
	switch op % 16 {
	default: // Put
		m.put(k, v)
	case 7, 8, 9:
		_, had := m.want[k]
		if got := m.m.Delete(k); got != had {
			m.t.Fatalf("Delete(%v) = %t", k, got)
		}
		delete(m.want, k)
	case 10:
		got, found, err := m.m.PutIfAbsent(k, v)
		want, had := m.want[k]
		if err != nil {
			m.refused(err)
			return
		}
		if !had {
			want = v
			m.want[k] = v
		}
		if found != had || !m.equal(got, want) {
			m.t.Fatalf("PutIfAbsent(%v) = %v, %t; want %v, %t", k, got, found, want, had)
		}
	case 11:
		before, had := m.want[k]
		err := m.m.Update(k, func(p *V, found bool) {
			if found != had || !m.equal(*p, before) {
				m.t.Fatalf("Update(%v) finds %v, %t; want %v, %t", k, *p, found, before, had)
			}
			*p = v
		})
		if err != nil {
			m.refused(err)
			return
		}
		m.want[k] = v
	case 12:
		if shared, ok := m.m.(*Shared[K, V]); ok {
			m.deleteIf(shared, k, arg%3 == 0)
		}
		m.compute(k, v, freehold.Change(arg>>8%5))
	case 13: // a run of neighbours
		for i := range arg % 64 {
			m.put(m.key(arg+i), v)
		}
	case 14:
		switch {
		case arg%64 == 0:
			m.m.Clear()
			clear(m.want)
		case arg%4 == 0:
			if err := m.m.Grow(arg % 512); err != nil {
				m.refused(err)
			}
		default:
			for i := range arg % 64 {
				delete(m.want, m.key(arg+i))
				m.m.Delete(m.key(arg + i))
			}
		}
	case 15:
		m.iterate(arg)
	}
}

func (m *model[K, V]) deleteIf(shared *Shared[K, V], k K, keep bool) {
	want, had := m.want[k]
	asked := false
	got := shared.DeleteIf(k, func(v V) bool {
		if asked = true; !m.equal(v, want) {
			m.t.Fatalf("DeleteIf(%v) has %v; want %v", k, v, want)
		}
		return !keep
	})
	if got != (had && !keep) || asked != had {
		m.t.Fatalf("DeleteIf(%v) = %t, and has asked: %t", k, got, asked)
	}
	if got {
		delete(m.want, k)
	}
}

func (m *model[K, V]) put(k K, v V) {
	if err := m.m.Put(k, v); err != nil {
		m.refused(err)
		m.get(k)
		return
	}
	m.want[k] = v
}

func (m *model[K, V]) get(k K) {
	calls := map[string]func(k K) (V, bool){"Get": m.m.Get}
	plain, isPlain := m.m.(*Map[K, V])
	if !isPlain {
		calls = gets(m.m.(*Shared[K, V]))
	}
	want, had := m.want[k]
	for call, get := range calls {
		if got, ok := get(k); ok != had || !m.equal(got, want) {
			m.t.Fatalf("%s(%v) = %v, %t; want %v, %t", call, k, got, ok, want, had)
		}
	}
	if !isPlain || plain.views() {
		return
	}
	if p := plain.At(k); (p != nil) != had || had && !m.equal(*p, want) {
		m.t.Fatalf("At(%v) = %v; want %v, %t", k, p, want, had)
	} else if had { // it is the value that Get has
		*p = m.value(m.fresh)
		m.want[k] = *p
	}
}

// iterate changes a Map in a loop over it: it deletes some entries and adds others. The loop
// of a Shared may yield deleted entries.
func (m *model[K, V]) iterate(arg int) {
	plain, isPlain := m.m.(*Map[K, V])
	if !isPlain {
		arg = 0
	}
	before := map[K]bool{}
	for k := range m.want {
		before[k] = true
	}
	seen := map[K]bool{}
	n := 0
	for k, v := range m.m.All() {
		want, had := m.want[k]
		if !had || !m.equal(v, want) {
			m.t.Fatalf("All yields %v, %v; want %v, %t", k, v, want, had)
		}
		if seen[k] {
			m.t.Fatalf("All yields %v twice", k)
		}
		seen[k] = true
		delete(before, k)
		n++
		if n > 100 {
			continue // see the others, and leave them alone
		}
		if arg&1 != 0 {
			d := m.key(arg + 7*n)
			if !seen[d] { // if deleted and added again it may be yielded again
				m.m.Delete(d)
				delete(m.want, d)
				delete(before, d)
			}
		}
		for i := range arg >> 1 & 7 {
			if a := m.key(arg + 11*n + i); !before[a] {
				m.fresh++
				m.put(a, m.value(m.fresh))
			} else {
				m.put(a, m.value(m.fresh))
			}
		}
	}
	if len(before) > 0 {
		m.t.Fatalf("All leaves out %d entries of %d", len(before), len(seen))
	}
	if isPlain && plain.cursors != nil {
		m.t.Fatal("a cursor stays")
	}
}

// verify compares all entries.
func (m *model[K, V]) verify() {
	m.t.Helper()
	mustBeWhole(m.t, m.m)
	if n := m.parent.Counts().LiveBytes; m.m.Len() != len(m.want) || reserved(m.m) != n {
		m.t.Fatalf("%d entries, want %d; Reserved is %d, want %d", m.m.Len(), len(m.want), reserved(m.m), n)
	}
	keys := make([]K, 0, len(m.want))
	for k := range m.want {
		m.get(k)
		keys = append(keys, k)
	}
	plain, isPlain := m.m.(*Map[K, V])
	if !isPlain {
		return
	}
	if n := len(slices.Collect(plain.Keys())); n != len(keys) || n != len(slices.Collect(plain.Values())) {
		m.t.Fatalf("%d keys and %d values, want %d", n, len(slices.Collect(plain.Values())), len(keys))
	}
	keys = append(keys, m.key(1<<20))
	values, found := make([]V, len(keys)), make([]bool, len(keys))
	plain.GetMany(keys, values, found)
	for i, k := range keys {
		if want, had := m.want[k]; found[i] != had || !m.equal(values[i], want) {
			m.t.Fatalf("GetMany of %v: %v, %t; want %v, %t", k, values[i], found[i], want, had)
		}
	}
}

func (m *model[K, V]) refused(err error) {
	if !errors.Is(err, freehold.ErrOutOfMemory) {
		m.t.Fatal(err)
	}
}

func same[V comparable](a, b V) bool { return a == b }

func number[T ~uint8 | ~uint32 | ~uint64](n int) T { return T(n) }

func text(n int) string {
	switch n % 50 {
	case 1:
		return ""
	case 2:
		return fmt.Sprintf("%0200d", n)
	case 3:
		return fmt.Sprintf("%064d", n)
	}
	return fmt.Sprintf("%x", n*n)
}

func bytesOf(n int) []byte { return []byte(text(n)) }

type padded struct {
	a uint8
	b uint64
	c uint16
}

// noisy returns a padded with noise in its padding.
func noisy(n int) padded {
	p := new(padded)
	fillPadding(p, byte(rand.Uint32()))
	p.a, p.b, p.c = uint8(n), uint64(n), uint16(n)
	return *p
}

type runner interface{ run(prog []byte) }

// modelled makes models of a Map or a Shared of some types.
type modelled struct {
	name string
	make func(t testing.TB, parent freehold.Allocator, narrow uint64, shared, huge bool) (r runner, end func())
}

// kinds are the types that programs run on; the second byte of the input selects one.
var kinds = []modelled{
	kind("uint64-uint64", number[uint64], number[uint64], same),
	kind("uint32-uint8", number[uint32], number[uint8], same),
	kind("uint8-[3]uint8", number[uint8], func(n int) [3]byte { return [3]byte{byte(n), byte(n >> 8), 3} }, same),
	kind("uint64-none", number[uint64], func(int) struct{} { return struct{}{} }, same),
	kind("none-uint64", func(int) struct{} { return struct{}{} }, number[uint64], same),
	kind("none-none", func(int) struct{} { return struct{}{} }, func(int) struct{} { return struct{}{} }, same),
	kind("[3]uint8-[24]byte", func(n int) [3]byte { return [3]byte{byte(n), byte(n >> 8), byte(n >> 16)} }, func(n int) [24]byte { return [24]byte{23: byte(n)} }, same),
	kind("[24]byte-[200]byte", func(n int) [24]byte { return [24]byte{byte(n), 23: byte(n >> 8)} }, func(n int) [200]byte { return [200]byte{0: byte(n), 199: byte(n)} }, same),
	kind("[200]byte-uint64", func(n int) [200]byte { return [200]byte{byte(n), 199: byte(n >> 8)} }, number[uint64], same),
	kind("[16]byte-uint64", func(n int) [16]byte { return [16]byte{byte(n), 15: byte(n >> 8)} }, number[uint64], same),
	kind("[2]uint64-uint8", func(n int) [2]uint64 { return [2]uint64{uint64(n) % 3, uint64(n)} }, number[uint8], same), // keys and values apart
	kind("padded-padded", noisy, noisy, same),
	kind("float64-float32", func(n int) float64 { return float64(n-20) / 4 }, func(n int) float32 { return float32(n) }, same),
	kind("string-uint64", text, number[uint64], same),
	kind("string-string", text, text, same),
	kind("uint64-[]byte", number[uint64], bytesOf, func(a, b []byte) bool { return string(a) == string(b) }),
	kind("string-none", text, func(int) struct{} { return struct{}{} }, same),
	kind("string-[]byte", text, bytesOf, func(a, b []byte) bool { return string(a) == string(b) }),
	kind("uint64-[64]float32", number[uint64], func(n int) (v [64]float32) { v[0], v[63] = float32(n), -float32(n); return v }, same),
	kind("string-[64]float32", text, func(n int) (v [64]float32) { v[0], v[63] = float32(n), -float32(n); return v }, same),
	kind("[200]byte-string", func(n int) [200]byte { return [200]byte{byte(n), 199: byte(n >> 8)} }, text, same),
}

func kind[K comparable, V any](name string, key func(int) K, value func(int) V, equal func(a, b V) bool) modelled {
	return modelled{name, func(t testing.TB, parent freehold.Allocator, narrow uint64, shared, huge bool) (runner, func()) {
		open := maker[K, V](makeMap[K, V])
		if shared {
			open = makeShared[K, V]
		}
		if huge {
			open = withHuge(open, obey)
		}
		memory := freehold.NewTagged(parent, "")
		m := &model[K, V]{t: t, m: open(memory, narrow), parent: memory, want: map[K]V{}, key: key, value: value, equal: equal}
		return m, m.m.Close
	}}
}

// narrows are the bits that hashes lack; the first byte of the input selects one.
var narrows = []uint64{
	0,
	0xFFFFFFFF << 32,         // one table and one tag
	0xFFFFFFFF,               // one home
	0x7F << tagShift,         // one tag
	1<<64 - 1,                // all hashes alike
	0xF0FFFFFF_FFFFFFFF,      // sixteen hashes
	0xFF000000_FF000000 << 0, // few tables, few homes
}

const maxSteps = 200

func runProgram(t testing.TB, prog []byte) {
	if len(prog) < 2 {
		return
	}
	var parent freehold.Allocator = alloctest.New(t)
	if prog[0]&16 != 0 {
		parent = freehold.NewLimit(parent, 20_000)
	}
	r, end := kinds[int(prog[1])%len(kinds)].make(t, parent, narrows[int(prog[0]&15)%len(narrows)], prog[0]&32 != 0, prog[0]&64 != 0)
	r.run(prog[2:min(len(prog), 2+3*maxSteps)])
	end()
}

// FuzzMap runs its input as a program against the model.
func FuzzMap(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for kind := range kinds {
		f.Add(randomProgram(r, kind, 40))
	}
	f.Fuzz(func(t *testing.T, prog []byte) { runProgram(t, prog) })
}

func TestRandomPrograms(t *testing.T) {
	n := 60 // half of them of a Shared
	if testing.Short() {
		n = 8
	}
	for i, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, uint64(i)))
			for range n {
				runProgram(t, randomProgram(r, i, maxSteps))
				if t.Failed() {
					return
				}
			}
		})
	}
}

// randomProgram returns a program for a kind. Keys are of a range that differs from
// program to program.
func randomProgram(r *rand.Rand, kind, steps int) []byte {
	prog := make([]byte, 2+3*steps)
	for i := range prog {
		prog[i] = byte(r.Uint32())
	}
	high := byte(1<<r.IntN(5) - 1)
	for i := 4; i < len(prog); i += 3 {
		prog[i] &= high
	}
	prog[1] = byte(kind)
	return prog
}
