// What a Map and a Shared have in common, each once.

package hashmap

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
)

// A maker makes a Map or a Shared, whose hashes lack the bits of narrow.
type maker[K comparable, V any] func(parent freehold.Allocator, narrow uint64) subject[K, V]

func makeMap[K comparable, V any](parent freehold.Allocator, narrow uint64) subject[K, V] {
	m := New[K, V](parent, nil)
	m.narrowBy(narrow)
	return m
}

func makeShared[K comparable, V any](parent freehold.Allocator, narrow uint64) subject[K, V] {
	m := NewShared[K, V](parent, nil)
	m.narrowBy(narrow)
	return m
}

// narrowBy clears the bits of narrow in all hashes.
func (c *scheme) narrowBy(narrow uint64) {
	if c.hash.keep = ^narrow; narrow != 0 && c.hash.kind == plainKeys {
		c.hash.kind, c.short = narrowKeys, false
	}
}

func both[K comparable, V any](t *testing.T, f func(t *testing.T, open maker[K, V])) {
	t.Run("Map", func(t *testing.T) { f(t, makeMap[K, V]) })
	t.Run("Shared", func(t *testing.T) { f(t, makeShared[K, V]) })
}

// mustBeWhole checks the invariants of m.
func mustBeWhole[K comparable, V any](t testing.TB, m subject[K, V]) {
	t.Helper()
	switch m := m.(type) {
	case *Map[K, V]:
		if fault := m.check(); fault != "" {
			t.Fatal(fault)
		}
	case *Shared[K, V]:
		m.checkAll()
	}
}

// reserved returns how many bytes m has of its parent.
func reserved[K comparable, V any](m subject[K, V]) int {
	if m, ok := m.(*Map[K, V]); ok {
		return m.Stats().Reserved
	}
	return m.(*Shared[K, V]).Stats().Reserved
}

func TestPanics(t *testing.T) {
	type node struct {
		id   int
		name string
	}
	type deep struct{ nodes [2]node }
	type tooLarge [maxBytes + 1]byte
	const (
		large  = ": a K or V of 16777217 bytes, want 16777216 or less"
		points = ", which points into the Go heap; use "
	)
	a := alloctest.New(t)
	m, texts, shared := New[int, int](a, nil), New[int, string](a, nil), NewShared[int, int](a, nil)
	defer m.Close()
	defer texts.Close()
	defer shared.Close()
	keys := make([]int, 3)
	for _, test := range []struct {
		want string
		do   func()
	}{
		{"New[K=node]: field name is a string" + points + "freehold.String", func() { New[node, int](a, nil) }},
		{"New[V=deep]: field nodes[0].name is a string" + points + "freehold.String", func() { New[string, deep](a, nil) }},
		{"New[K=*int]: it is a *int" + points + "freehold.Ptr[int]", func() { New[*int, int](a, nil) }},
		{"New[V=[]uint16]: it is a []uint16" + points + "freehold.Slice[uint16]", func() { New[int, []uint16](a, nil) }},
		{"New[K=interface {}]: it is an interface" + points + "a concrete type without Go pointers", func() { New[any, int](a, nil) }},
		// Not by New and NewShared: the stack maps of their methods for this type take 50 MB.
		{"New" + large, func() { kindsOf[int, tooLarge]("hashmap.New") }},
		{"New" + large, func() { kindsOf[string, tooLarge]("hashmap.New") }},
		{"New" + large, func() { kindsOf[tooLarge, string]("hashmap.New") }},
		{"Map.At: values are copies that the map owns: use Get and Put", func() { texts.At(1) }},
		{"Map.Grow: n -1, want 0 or more", func() { m.Grow(-1) }},
		{"Map.GetMany: length of values 2, want 3 or more", func() { m.GetMany(keys, keys[:2], make([]bool, 3)) }},
		{"Map.GetMany: length of found 2, want 3 or more", func() { m.GetMany(keys, keys, make([]bool, 2)) }},
		{"Map.PutMany: length of values 2, want 3 or more", func() { m.PutMany(keys, keys[:2]) }},
		{"NewShared[K=node]: field name is a string" + points + "freehold.String", func() { NewShared[node, int](a, nil) }},
		{"NewShared[V=*int]: it is a *int" + points + "freehold.Ptr[int]", func() { NewShared[int, *int](a, nil) }},
		{"Shared.AppendTo: values are neither strings nor bytes: use Get", func() { shared.AppendTo(nil, 1) }},
		{"Shared.Grow: n -1, want 0 or more", func() { shared.Grow(-1) }},
	} {
		panics.Want(t, "freehold: hashmap."+test.want, test.do)
	}

	// Keys of text have searches of their own.
	closed := New[string, int](a, nil)
	succeed(closed.Put("key", 1))
	closed.Close()
	for name, call := range map[string]func(k string){
		"Get":    func(k string) { closed.Get(k) },
		"At":     func(k string) { closed.At(k) },
		"Put":    func(k string) { closed.Put(k, 1) },
		"Delete": func(k string) { closed.Delete(k) },
	} {
		for _, k := range []string{"", "key", "long key", "a longer key than sixteen"} {
			panics.Want(t, "freehold: hashmap.Map."+name+": the map is closed", func() { call(k) })
		}
	}
}

// switched is an allocator that can be told to fail.
type switched struct {
	freehold.Allocator
	failing freehold.Allocator // nil, or what is asked instead
}

func (s *switched) Alloc(size, align int) ([]byte, error)  { return s.now().Alloc(size, align) }
func (s *switched) Zeroed(size, align int) ([]byte, error) { return s.now().Zeroed(size, align) }

func (s *switched) now() freehold.Allocator {
	if s.failing != nil {
		return s.failing
	}
	return s.Allocator
}

// Each allocation of each call fails, alone or with all after it: the entries are as before,
// and the call succeeds when there is memory. That is so in loops over the map too, where the
// growth of a Map takes a copy.
func TestOutOfMemoryChangesNothing(t *testing.T) {
	twoProcessors(t)
	word := func(i int) uint64 { return uint64(i) }
	t.Run("words", func(t *testing.T) { outOfMemory(t, word, word, 0) })
	t.Run("one table until the directory has 256", func(t *testing.T) { outOfMemory(t, word, word, 0xFF<<56) })
	t.Run("wide", func(t *testing.T) { outOfMemory(t, word, func(i int) wide { return wideOf(uint64(i)) }, 0) })
	t.Run("large", func(t *testing.T) { outOfMemory(t, word, func(i int) large { return largeOf(uint64(i)) }, 0) })
	t.Run("text", func(t *testing.T) { outOfMemory(t, textKey, textKey, 0) })
	t.Run("large by text", func(t *testing.T) {
		outOfMemory(t, textKey, func(i int) large { return largeOf(uint64(i)) }, 0)
	})
}

func outOfMemory[K, V comparable](t *testing.T, key func(int) K, value func(int) V, narrow uint64) {
	both(t, func(t *testing.T, open maker[K, V]) {
		a := &switched{Allocator: alloctest.New(t)}
		m, want := open(a, narrow), map[K]V{}
		defer m.Close()
		failures := 0
		try := func(i int, call func() error) {
			fail := []func(freehold.Allocator, int) freehold.Allocator{alloctest.FailAfter, alloctest.FailOnce}[i%2]
			for n := 0; ; n++ {
				a.failing = fail(a.Allocator, n)
				err := call()
				a.failing = nil
				if err == nil {
					return
				}
				failures++
				got, found := m.Get(key(i))
				if before, had := want[key(i)]; !errors.Is(err, freehold.ErrOutOfMemory) || m.Len() != len(want) || found != had || got != before {
					t.Fatalf("call %d fails at allocation %d: %v, and %d entries, want %d", i, n, err, m.Len(), len(want))
				}
			}
		}
		call := func(i, to int) {
			k, v := key(i), value(to)
			try(i, []func() error{
				func() error { return m.Put(k, v) },
				func() error { return m.Update(k, func(p *V, _ bool) { *p = v }) },
				func() error { _, _, err := m.PutIfAbsent(k, v); return err },
				func() error {
					_, _, err := m.Compute(k, func(p *V, _ bool) freehold.Change { *p = v; return freehold.Store })
					return err
				},
			}[to%4])
			if _, had := want[k]; !had || to%4 != 2 {
				want[k] = v
			}
		}
		same := func() {
			t.Helper()
			mustBeWhole(t, m)
			if got := maps.Collect(m.All()); !maps.Equal(got, want) {
				t.Fatalf("%d entries, want %d", len(got), len(want))
			}
		}
		entries := 2000
		if testing.Short() {
			entries = 1000
		}
		for i := range entries {
			call(i, i)
			for range m.All() {
				call(i+1, i)
				break
			}
			call(i/2, i+1)
			if i%7 == 6 {
				m.Delete(key(i - 3))
				delete(want, key(i-3))
			}
			if i%100 == 0 {
				same()
			}
		}
		if failures < 10 {
			t.Errorf("%d failures", failures)
		}
		for _, n := range []int{math.MaxInt, math.MaxInt - 1} {
			if err := m.Grow(n); !errors.Is(err, freehold.ErrOutOfMemory) {
				t.Errorf("Grow(%d): %v", n, err)
			}
		}
		try(0, func() error { return m.Grow(6000) })
		same()

		// Where a key is, its value needs memory only if that is in a block of its own, or of
		// another length.
		a.failing = alloctest.FailAfter(a.Allocator, 0)
		if v, found, err := m.PutIfAbsent(key(0), value(1)); v != want[key(0)] || !found || err != nil {
			t.Errorf("PutIfAbsent is %v, %t, %v", v, found, err)
		}
		inBlock := false
		switch m := m.(type) {
		case *Map[K, V]:
			inBlock = m.views() && !m.pairs
		case *Shared[K, V]:
			inBlock = m.values != noText
		}
		if err := m.Put(key(0), value(1)); (err != nil) != inBlock {
			t.Errorf("a value in place of another: %v", err)
		}
		for i := range 10_000 {
			if v, found, err := m.PutIfAbsent(key(-1-i), value(1)); err != nil {
				if v != *new(V) || found {
					t.Errorf("PutIfAbsent that fails is %v, %t", v, found)
				}
				break
			}
		}
		a.failing = nil
	})
}

// As many deletions as insertions leave the lengths of searches as they were, and at most
// double the memory: each table that is fuller than ever by chance may grow once more.
func TestChurn(t *testing.T) {
	t.Run("words", func(t *testing.T) { churn(t, func(i int) uint64 { return uint64(i) }) })
	t.Run("strings", func(t *testing.T) { churn(t, func(i int) string { return fmt.Sprintf("%08d", i) }) })
}

func churn[K comparable](t *testing.T, key func(int) K) {
	both(t, func(t *testing.T, open maker[K, uint64]) {
		const live = 2000
		h := freehold.NewHeap(nil)
		defer h.Close()
		m := open(h, 0)
		defer m.Close()
		rounds := 100
		if testing.Short() {
			rounds = 20
		}
		bytes := 0
		for i := range rounds * live {
			succeed(m.Put(key(i), 0))
			if i >= live && !m.Delete(key(i-live)) {
				t.Fatal(i)
			}
			if i == 10*live {
				bytes = reserved(m)
			}
		}
		mustBeWhole(t, m) // and so there is no overflow bit that no entry needs
		if n := reserved(m); m.Len() != live || n > 2*bytes {
			t.Errorf("%d entries in %d bytes, and %d in the beginning", m.Len(), n, bytes)
		}
	})
}

// No call finds a NaN, and each Put of one adds an entry, which a loop has once, also if
// tables grow under it.
func TestNaN(t *testing.T) {
	both(t, func(t *testing.T, open maker[float64, int]) {
		m := open(alloctest.New(t), 0)
		defer m.Close()
		const n = 5000
		for i := range n {
			succeed(m.Put(math.NaN(), i))
			succeed(m.Put(float64(i), -i))
			if i%100 == 0 {
				m.Delete(float64(i))
			}
		}
		if _, ok := m.Get(math.NaN()); ok || m.Delete(math.NaN()) || m.Len() != 2*n-n/100 {
			t.Errorf("a NaN was found, or there are %d entries", m.Len())
		}
		mustBeWhole(t, m)
		seen, nans := map[int]bool{}, 0
		for k, v := range m.All() {
			if k == k {
				continue
			}
			nans++
			if seen[v] {
				t.Fatalf("NaN %d twice", v)
			}
			seen[v] = true
			if nans > 2*n {
				break
			}
			succeed(m.Put(math.NaN(), n+nans))
		}
		for v := range n {
			if nans <= 2*n && !seen[v] {
				t.Fatalf("no NaN %d", v)
			}
		}
		if v, found, err := m.PutIfAbsent(math.NaN(), 7); v != 7 || found || err != nil {
			t.Errorf("PutIfAbsent is %d, %t, %v", v, found, err)
		}
		m.Clear()
		if m.Len() != 0 {
			t.Errorf("Clear leaves %d", m.Len())
		}
	})
}

// A key or value whose bytes change after Put is not the map's, and strings of all lengths
// come back, around the one that no longer fits a reference too.
func TestTextIsCopied(t *testing.T) {
	both(t, func(t *testing.T, open maker[string, []byte]) {
		m := open(alloctest.New(t), 0)
		defer m.Close()
		sizes := []int{0, 1, 7, 8, 9, 4095, longBytes - 1, longBytes, longBytes + 1, 1 << 20}
		for round := range 2 {
			valueBytes := func(i int) int { return sizes[(i+round)%len(sizes)] }
			for i, n := range sizes {
				k, v := []byte(strings.Repeat("k", n)), []byte(strings.Repeat("v", valueBytes(i)))
				if plain, ok := m.(*Map[string, []byte]); ok {
					succeed(PutBytes(plain, k, v))
				} else {
					succeed(m.Put(unsafe.String(unsafe.SliceData(k), n), v))
				}
				clear(k)
				clear(v)
			}
			mustBeWhole(t, m)
			for i, n := range sizes {
				k, want := strings.Repeat("k", n), strings.Repeat("v", valueBytes(i))
				if v, ok := m.Get(k); !ok || string(v) != want || cap(v) < len(want) {
					t.Errorf("a key of %d bytes: %d bytes, %t", n, len(v), ok)
				}
				if plain, ok := m.(*Map[string, []byte]); ok {
					if v, ok := GetBytes(plain, []byte(k)); !ok || string(v) != want || cap(v) != len(want) {
						t.Errorf("a key of %d bytes: %d bytes, %t", n, len(v), ok)
					}
				}
			}
		}
		for _, n := range sizes {
			if !m.Delete(strings.Repeat("k", n)) {
				t.Errorf("no key of %d bytes", n)
			}
		}
		mustBeWhole(t, m)
		if m.Len() != 0 {
			t.Errorf("%d entries", m.Len())
		}
	})
}

// distant is an allocator whose next block has an address beyond 48 bits, where there is
// no memory.
type distant struct {
	freehold.Allocator
	next bool
	out  [][]byte
}

func (d *distant) Alloc(size, align int) ([]byte, error) {
	if !d.next {
		return d.Allocator.Alloc(size, align)
	}
	d.next = false
	b := bytesAt(1<<48, size)
	d.out = append(d.out, b)
	return b, nil
}

func (d *distant) Free(b []byte) {
	for i, o := range d.out {
		if &o[0] == &b[0] {
			d.out = slices.Delete(d.out, i, i+1)
			return
		}
	}
	d.Allocator.Free(b)
}

// A block that no reference can hold is returned, and out of memory.
func TestDistantBlocks(t *testing.T) {
	if bits.UintSize == 32 {
		t.Skip("there are no such addresses")
	}
	both(t, func(t *testing.T, open maker[string, string]) {
		d := &distant{Allocator: alloctest.New(t)}
		m := open(d, 1<<64-1) // all in the first table
		defer m.Close()
		succeed(m.Put("a", "b"))
		for _, k := range []string{"a", "c"} {
			d.next = true
			if err := m.Put(k, "dd"); !errors.Is(err, freehold.ErrOutOfMemory) || d.next || len(d.out) > 0 {
				t.Errorf("error %v, and %d blocks are left", err, len(d.out))
			}
			mustBeWhole(t, m)
		}
		if v, _ := m.Get("a"); m.Len() != 1 || v != "b" {
			t.Errorf("%d entries, the first is %q", m.Len(), v)
		}
	})
}

// A map whose hashes are alike works, and its directory stays small.
func TestCollidingHashes(t *testing.T) {
	twoProcessors(t)
	both(t, func(t *testing.T, open maker[uint64, uint64]) {
		for _, narrow := range narrows {
			m := open(alloctest.New(t), narrow)
			const n = 500
			for k := range uint64(n) {
				succeed(m.Put(k, k))
			}
			mustBeWhole(t, m)
			for k := range uint64(2 * n) {
				if v, ok := m.Get(k); ok != (k < n) || ok && v != k {
					t.Fatalf("narrow %#x: %d is %d, %t", narrow, k, v, ok)
				}
			}
			switch m := m.(type) {
			case *Map[uint64, uint64]:
				if st := m.Stats(); st.Slots > 16*n || 1<<m.depth() > 1024 {
					t.Errorf("narrow %#x: %+v, depth %d", narrow, st, m.depth())
				}
			case *Shared[uint64, uint64]:
				if st := m.Stats(); st.Slots > 16*n || st.Directory > 2*sparseEntries*st.Tables {
					t.Errorf("narrow %#x: %+v", narrow, st)
				}
			}
			for k := uint64(0); k < n; k += 3 {
				if !m.Delete(k) {
					t.Fatalf("narrow %#x: no %d", narrow, k)
				}
			}
			mustBeWhole(t, m)
			m.Close()
		}
	})
}

// An error of a parent that is not ErrOutOfMemory matches it too.
func TestForeignErrors(t *testing.T) {
	both(t, func(t *testing.T, open maker[uint64, uint64]) {
		m := open(foreign{alloctest.New(t)}, 0)
		defer m.Close()
		if err := m.Put(1, 1); !errors.Is(err, freehold.ErrOutOfMemory) || !errors.Is(err, errForeign) {
			t.Error(err)
		}
	})
}

type foreign struct{ freehold.Allocator }

var errForeign = errors.New("foreign")

func (foreign) Alloc(int, int) ([]byte, error) { return nil, errForeign }
