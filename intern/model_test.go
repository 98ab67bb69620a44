package intern

import (
	"errors"
	"iter"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/hash"
	"github.com/freehold-go/freehold/internal/poison"
)

// hashes are how models hash: well, and with collisions of each kind.
var hashes = []func(hash.Seed, string) uint64{
	nil,
	func(hash.Seed, string) uint64 { return 0 },
	func(hash.Seed, string) uint64 { return 1<<64 - 1 }, // the hash of a free slot
	func(s hash.Seed, v string) uint64 { return s.String(v) >> 61 << 61 },
	func(s hash.Seed, v string) uint64 { return s.String(v) >> 40 }, // one entry of the directory
	func(_ hash.Seed, v string) uint64 { return uint64(len(v)) << 55 },
}

// A subject is Strings or a Shared.
type subject interface {
	Intern(string) (ID, error)
	InternBytes([]byte) (ID, error)
	Lookup(string) (ID, bool)
	LookupBytes([]byte) (ID, bool)
	Value(ID) string
	Retain(ID)
	Release(ID) bool
	All() iter.Seq2[ID, string]
	Len() int
	Stats() Stats
	Close()
	check() string
}

// A model is what a set of strings must be.
type model struct {
	t     testing.TB
	s     subject
	store *store
	refs  map[string]int // 1 if references are not counted
	ids   map[string]ID
	max   int // of the length of ids ever
}

// newModel returns a model of Strings that hash by h or, if shared is set, of a Shared.
func newModel(t testing.TB, parent freehold.Allocator, counted bool, h func(hash.Seed, string) uint64, shared bool) *model {
	m := &model{t: t, refs: map[string]int{}, ids: map[string]ID{}}
	o := &Options{RefCounts: counted}
	if shared {
		s := NewShared(parent, o)
		m.s, m.store = s, &s.store
	} else {
		s := New(parent, o)
		s.hash = h
		m.s, m.store = s, &s.store
	}
	return m
}

// text returns a string, one of some for each x.
func text(x, y int) string {
	switch n := x % 16; n {
	case 0:
		return ""
	case 15:
		return strings.Repeat(string(rune('a'+y%26)), 240+y%20) // about the limit of short ones
	case 13:
		return string(rune('a'+y%26)) + strings.Repeat("x", 8+y%8) // of 8 to 17 bytes, with equal last ones
	case 14:
		return strings.Repeat("long", 100+y*10)
	default:
		return strings.Repeat(string(rune('a'+y%26)), n) + string(rune(y))
	}
}

// run reads prog as a program: each three bytes are an operation and its arguments.
func (m *model) run(prog []byte) {
	for ; len(prog) >= 3; prog = prog[3:] {
		m.step(prog[0], int(prog[1]), int(prog[2]))
	}
	m.verify()
}

func (m *model) step(op byte, x, y int) {
	v := text(x, y)
	switch op % 8 {
	case 0, 1, 2:
		m.intern(v)
	case 3:
		lookup := m.s.Lookup
		if y%2 == 1 {
			lookup = func(v string) (ID, bool) { return m.s.LookupBytes([]byte(v)) }
		}
		id, ok := lookup(v)
		if want, is := m.ids[v]; ok != is || id != want {
			m.t.Fatalf("Lookup of %.20q: %d, %t, want %d, %t", v, id, ok, want, is)
		}
	case 4, 5:
		if id, ok := m.ids[v]; ok && m.store.counted {
			m.release(v, id)
		}
	case 6:
		if id, ok := m.ids[v]; ok && m.store.counted {
			m.s.Retain(id)
			m.refs[v]++
		}
	case 7:
		if id, ok := m.ids[v]; ok && m.s.Value(id) != v {
			m.t.Fatalf("string %d is %.20q, want %.20q", id, m.s.Value(id), v)
		}
	}
}

func (m *model) intern(v string) {
	call := m.s.Intern
	if len(v)%2 == 1 {
		call = func(v string) (ID, error) {
			b := []byte(v)
			defer clear(b) // it is not kept
			return m.s.InternBytes(b)
		}
	}
	id, err := call(v)
	if err != nil {
		if !errors.Is(err, freehold.ErrOutOfMemory) {
			m.t.Fatalf("Intern: %v", err)
		}
		if id, ok := m.ids[v]; ok {
			m.t.Fatalf("Intern of string %d, which is there: %v", id, err)
		}
		return
	}
	if want, ok := m.ids[v]; ok && id != want {
		m.t.Fatalf("%.20q has the ID %d, and had %d", v, id, want)
	}
	if int(id) > m.max || int(id) > len(m.ids) && !m.store.counted {
		m.t.Fatalf("ID %d for string %d", id, len(m.ids)+1)
	}
	if m.store.counted || m.refs[v] == 0 {
		m.refs[v]++
	}
	m.ids[v] = id
	m.max = max(m.max, len(m.ids))
}

func (m *model) release(v string, id ID) {
	m.refs[v]--
	if gone := m.s.Release(id); gone != (m.refs[v] == 0) {
		m.t.Fatalf("Release: %t, with %d references left", gone, m.refs[v])
	}
	if m.refs[v] == 0 {
		delete(m.refs, v)
		delete(m.ids, v)
	}
}

// verify compares all that the strings have with the model.
func (m *model) verify() {
	m.t.Helper()
	if fault := m.s.check(); fault != "" {
		m.t.Fatal(fault)
	}
	bytes := 0
	for v, id := range m.ids {
		if got, ok := m.s.Lookup(v); !ok || got != id || m.s.Value(id) != v {
			m.t.Fatalf("%.20q has the ID %d, %t, want %d", v, got, ok, id)
		}
		if m.store.counted && int(*m.store.counts.word(uint32(id))) != m.refs[v] {
			m.t.Fatalf("%.20q has %d references, want %d", v, *m.store.counts.word(uint32(id)), m.refs[v])
		}
		bytes += len(v)
	}
	all := maps.Collect(m.s.All())
	if len(all) != len(m.ids) {
		m.t.Fatalf("All has %d strings, want %d", len(all), len(m.ids))
	}
	for id, v := range all {
		if m.ids[v] != id {
			m.t.Fatalf("All has %.20q with the ID %d, want %d", v, id, m.ids[v])
		}
	}
	if st := m.s.Stats(); st.Len != len(m.ids) || m.s.Len() != st.Len || st.LiveBytes != bytes || st.IDs > m.max {
		m.t.Fatalf("%+v, want %d strings of %d bytes and %d IDs at most", st, len(m.ids), bytes, m.max)
	}
}

func (m *model) close() {
	m.s.Close()
	if st := m.s.Stats(); st != (Stats{}) {
		m.t.Errorf("after Close: %+v", st)
	}
}

// FuzzStrings reads its input as a program for a model. The first two bytes choose the
// options, the hash and when memory runs out.
func FuzzStrings(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 2, 4, 1, 2, 0, 1, 2})
	f.Add([]byte{3, 0, 0, 14, 9, 0, 15, 7, 4, 14, 9, 0, 15, 8, 6, 15, 7})
	r := rand.New(rand.NewPCG(1, 1))
	for range 8 {
		prog := make([]byte, 3000)
		for i := range prog {
			prog[i] = byte(r.Uint32())
		}
		f.Add(prog)
	}
	f.Fuzz(func(t *testing.T, prog []byte) {
		if len(prog) < 2 || len(prog) > 10000 {
			return
		}
		var parent freehold.Allocator = alloctest.New(t)
		if limit := int(prog[1]); limit > 0 {
			parent = alloctest.FailAfter(parent, limit)
		}
		m := newModel(t, parent, prog[0]%2 == 1, hashes[int(prog[0]/2)%len(hashes)], prog[0] >= 1<<7)
		defer m.close()
		m.run(prog[2:])
	})
}

// Random programs, for all hashes, with and without counts and poison.
func TestRandomPrograms(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 12
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		most := 20000
		if hashes[seed/2%len(hashes)] != nil {
			most = 2000 // each string is compared with many
		}
		prog := make([]byte, 3*r.IntN(most))
		for i := range prog {
			prog[i] = byte(r.Uint32())
		}
		restore := poison.Set(seed%4 > 1)
		m := newModel(t, freehold.NewTagged(alloctest.New(t), ""), seed%2 == 1, hashes[seed/2%len(hashes)], seed%3 == 0)
		m.run(prog)
		m.close()
		restore()
	}
}

// All hashes collide, and so many strings are there that a segment would be split.
func TestManyCollisions(t *testing.T) {
	for i, h := range hashes {
		m := newModel(t, alloctest.New(t), true, h, false)
		n := 3400 // one segment has up to 3,190
		switch {
		case i == 0:
			n = 30000
		case i > 1 && testing.Short():
			n = 1000
		}
		key := func(i int) string { return string(rune(i + 1)) }
		for i := range n {
			m.intern(key(i))
			if i < 200 { // while segments are small, their ends are near
				m.verify()
			}
		}
		if len(m.ids) < n-2048 { // runes that are none have one string
			t.Fatalf("%d strings", len(m.ids))
		}
		for i := range n {
			if id, ok := m.ids[key(i)]; ok && i%3 > 0 {
				for m.refs[key(i)] > 0 {
					m.release(key(i), id)
				}
			}
		}
		m.verify()
		if entries := len(m.s.(*Strings).table.directory); entries > max(n/minPerEntry, 1) {
			t.Errorf("hash %d: a directory of %d entries for %d strings", i, entries, n)
		}
		m.close()
	}
}

// sizes that the comments and the doc name.
func TestSizes(t *testing.T) {
	if n := unsafe.Sizeof(head{}); n != headBytes {
		t.Errorf("head has %d bytes", n)
	}
	if n := unsafe.Sizeof(slot(0)); n != slotBytes {
		t.Errorf("slot has %d bytes", n)
	}
	if n := unsafe.Sizeof(longRecord{}); n != longWords*wordBytes {
		t.Errorf("longRecord has %d bytes", n)
	}
	if n := unsafe.Offsetof(record{}.first); n != prefix || unsafe.Sizeof(record{}) != 8 {
		t.Errorf("record's bytes begin at %d", n)
	}
	if maxShort != 247 {
		t.Errorf("maxShort is %d", maxShort)
	}
	if n := unsafe.Sizeof(Strings{}); n > 3<<10 {
		t.Errorf("Strings has %d bytes", n)
	}
}
