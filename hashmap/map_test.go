package hashmap

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/hash"
	"github.com/freehold-go/freehold/internal/panics"
)

var wantPanic = panics.Want

func mustCheck[K comparable, V any](t *testing.T, m *Map[K, V]) {
	t.Helper()
	if fault := m.check(); fault != "" {
		t.Fatal(fault)
	}
}

func TestTypesWithGoPointersPanic(t *testing.T) {
	a := alloctest.New(t)
	type node struct {
		id   int
		name string
	}
	type deep struct{ nodes [2]node }
	wantPanic(t, "freehold: hashmap.New[K=node]: field name is a string, which points into the Go heap; use freehold.String",
		func() { New[node, int](a, nil) })
	wantPanic(t, "freehold: hashmap.New[V=deep]: field nodes[0].name is a string, which points into the Go heap; use freehold.String",
		func() { New[string, deep](a, nil) })
	wantPanic(t, "freehold: hashmap.New[K=*int]: it is a *int, which points into the Go heap; use freehold.Ptr[int]",
		func() { New[*int, int](a, nil) })
	wantPanic(t, "freehold: hashmap.New[V=[]uint16]: it is a []uint16, which points into the Go heap; use freehold.Slice[uint16]",
		func() { New[int, []uint16](a, nil) })
	wantPanic(t, "freehold: hashmap.New[K=interface {}]: it is an interface, which points into the Go heap; use a concrete type without Go pointers",
		func() { New[any, int](a, nil) })
	const large = "freehold: hashmap.New: a K or V of 16777217 bytes, want 16777216 or less"
	wantPanic(t, large, func() { New[int, [maxBytes + 1]byte](a, nil) })
	wantPanic(t, large, func() { New[string, [maxBytes + 1]byte](a, nil) })
	wantPanic(t, large, func() { New[[maxBytes + 1]byte, string](a, nil) })
}

func TestMisusePanics(t *testing.T) {
	m := New[int, string](alloctest.New(t), nil)
	defer m.Close()
	wantPanic(t, "freehold: hashmap.Map.At: values are copies that the map owns: use Get and Put", func() { m.At(1) })
	wantPanic(t, "freehold: hashmap.Map.Grow: n -1, want 0 or more", func() { m.Grow(-1) })
	keys := make([]int, 3)
	wantPanic(t, "freehold: hashmap.Map.GetMany: length of values 2, want 3 or more",
		func() { m.GetMany(keys, make([]string, 2), make([]bool, 3)) })
	wantPanic(t, "freehold: hashmap.Map.GetMany: length of found 2, want 3 or more",
		func() { m.GetMany(keys, make([]string, 3), make([]bool, 2)) })
	wantPanic(t, "freehold: hashmap.Map.PutMany: length of values 2, want 3 or more",
		func() { m.PutMany(keys, make([]string, 2)) })
}

// A map of few entries takes little memory, and an empty one none.
func TestMemory(t *testing.T) {
	c := freehold.NewTagged(alloctest.New(t), "")
	m := New[uint64, uint64](c, nil)
	m.Get(1)
	m.Delete(1)
	m.Clear()
	if st := m.Stats(); c.Counts().Allocs != 0 || st.Reserved != 0 {
		t.Errorf("an empty map has %+v", st)
	}
	m.Put(1, 1)
	if st := m.Stats(); st.Reserved != 128+2*bits.UintSize/8 || c.Counts().LiveBytes != st.Reserved {
		t.Errorf("a map of one entry has %+v, and %+v", st, c.Counts())
	}
	for i := range uint64(100_000) {
		m.Put(i, i)
	}
	st := m.Stats()
	if per := st.Reserved / st.Len; per > 42 || c.Counts().LiveBytes != st.Reserved {
		t.Errorf("%d bytes an entry: %+v, %+v", per, st, c.Counts())
	}
	m.Clear()
	if after := m.Stats(); after.Reserved != st.Reserved || after.Len != 0 {
		t.Errorf("Clear leaves %+v", after)
	}
	mustCheck(t, m)
	m.Close()
}

// One Put moves the entries of a table at most, and takes that table's memory and that
// of the directory.
func TestGrowthIsInBoundedSteps(t *testing.T) {
	t.Run("words", func(t *testing.T) { boundedSteps(t, func(i int) uint64 { return uint64(i) }, uint64(0)) })
	t.Run("strings", func(t *testing.T) { boundedSteps(t, func(i int) string { return fmt.Sprint(i) }, "v") })
	t.Run("large", func(t *testing.T) { boundedSteps(t, func(i int) uint64 { return uint64(i) }, [300]byte{}) })
}

func boundedSteps[K comparable, V any](t *testing.T, key func(int) K, v V) {
	h := freehold.NewHeap(nil)
	defer h.Close()
	m := New[K, V](h, nil)
	defer m.Close()
	slots := int(m.maxGroups) * slotsPerGroup
	was := Stats{}
	for i := range 100_000 {
		m.Put(key(i), v)
		st := m.Stats()
		if moved := st.Moved - was.Moved; moved > slots {
			t.Fatalf("Put %d moves %d entries; a table has %d slots", i, moved, slots)
		}
		directory := 8 << m.depth()
		if grown := st.Reserved - was.Reserved; grown > max(tableBytes, minGroups*int(m.stride))+directory+500 {
			t.Fatalf("Put %d takes %d bytes, with a directory of %d", i, grown, directory)
		}
		if m.tables > 8 && 1<<m.depth() > 4*m.tables {
			t.Fatalf("%d references of %d tables", 1<<m.depth(), m.tables)
		}
		was = st
	}
	if m.tables < 100 {
		t.Errorf("%d tables", m.tables)
	}
	if per := float64(was.Moved) / float64(was.Len); per > 1.5 || per < 0.5 {
		t.Errorf("%.2f moves for each entry", per)
	}
	mustCheck(t, m)
}

// On each error the entries are as before, whichever allocation failed.
func TestOutOfMemoryChangesNothing(t *testing.T) {
	t.Run("words", func(t *testing.T) {
		outOfMemory(t, func(i int) uint64 { return uint64(i) }, func(i int) uint64 { return uint64(i) })
	})
	t.Run("strings", func(t *testing.T) {
		outOfMemory(t, func(i int) string { return fmt.Sprint("key ", i) }, func(i int) string { return fmt.Sprint("value ", i) })
	})
	t.Run("large", func(t *testing.T) {
		outOfMemory(t, func(i int) uint64 { return uint64(i) }, func(i int) [3000]byte { return [3000]byte{byte(i), byte(i >> 8)} })
	})
}

// switched is an allocator that can be told to fail after n allocations.
type switched struct {
	freehold.Allocator
	failing freehold.Allocator
}

func (s *switched) Alloc(size, align int) ([]byte, error) {
	if s.failing != nil {
		return s.failing.Alloc(size, align)
	}
	return s.Allocator.Alloc(size, align)
}

func outOfMemory[K, V comparable](t *testing.T, key func(int) K, value func(int) V) {
	a := &switched{Allocator: alloctest.New(t)}
	m := New[K, V](a, nil)
	const entries = 2000
	failures := 0
	for i := range entries {
		// In a loop over the map growth takes a copy too.
		for range m.All() {
			for n := 0; ; n++ {
				a.failing = alloctest.FailAfter(a.Allocator, n)
				err := m.Put(key(i), value(i))
				a.failing = nil
				if err == nil {
					break
				}
				failures++
				if !errors.Is(err, freehold.ErrOutOfMemory) {
					t.Fatal(err)
				}
				if m.Len() != i {
					t.Fatalf("%d entries after an error, want %d", m.Len(), i)
				}
				if _, ok := m.Get(key(i)); ok {
					t.Fatal("an entry that could not be added")
				}
			}
			break
		}
		if m.Len() == i { // the first one
			if err := m.Put(key(i), value(i)); err != nil {
				t.Fatal(err)
			}
		}
		if i%500 == 0 {
			mustCheck(t, m)
		}
	}
	for i := range entries {
		if v, ok := m.Get(key(i)); !ok || v != value(i) {
			t.Fatalf("entry %d is %v, %t", i, v, ok)
		}
	}
	if failures < 10 {
		t.Errorf("%d failures", failures)
	}
	for n := 0; ; n++ {
		a.failing = alloctest.FailAfter(a.Allocator, n)
		err := m.Grow(6000)
		a.failing = nil
		mustCheck(t, m)
		if err == nil {
			break
		}
	}
	was := m.Stats()
	a.failing = alloctest.FailAfter(a.Allocator, 0)
	if err := m.Put(key(0), value(1)); (err != nil) != m.views() {
		t.Errorf("a value in place of another: %v", err)
	}
	a.failing = nil
	if m.Len() != entries || m.Stats().Slots != was.Slots {
		t.Errorf("%+v, want %+v", m.Stats(), was)
	}
	m.Close()
}

// As many deletions as insertions leave the lengths of searches as they were, and at most
// double the memory.
func TestChurn(t *testing.T) {
	t.Run("words", func(t *testing.T) { churn(t, func(i int) uint64 { return uint64(i) }) })
	t.Run("strings", func(t *testing.T) { churn(t, func(i int) string { return fmt.Sprintf("%08d", i) }) })
}

func churn[K comparable](t *testing.T, key func(int) K) {
	const live = 2000
	h := freehold.NewHeap(nil)
	defer h.Close()
	m := New[K, uint64](h, nil)
	defer m.Close()
	for i := range live {
		m.Put(key(i), 0)
	}
	rounds := 100
	if testing.Short() {
		rounds = 20
	}
	var was Stats
	for i := live; i < rounds*live; i++ {
		if !m.Delete(key(i-live)) || m.Put(key(i), 0) != nil {
			t.Fatal(i)
		}
		if i == 10*live {
			was = m.Stats()
		}
	}
	mustCheck(t, m) // and so no overflow bit that no entry needs
	// Each table that is fuller than ever by chance may grow once more.
	if st := m.Stats(); st.Len != live || st.Reserved > 2*was.Reserved {
		t.Errorf("%+v, and in the beginning %+v", st, was)
	}
}

func TestNaN(t *testing.T) {
	m := New[float64, int](alloctest.New(t), nil)
	defer m.Close()
	const n = 5000
	for i := range n {
		m.Put(math.NaN(), i)
		m.Put(float64(i), -i)
		if i%100 == 0 {
			m.Delete(float64(i))
		}
	}
	if _, ok := m.Get(math.NaN()); ok || m.Delete(math.NaN()) || m.Len() != 2*n-n/100 {
		t.Errorf("a NaN was found, or there are %d entries", m.Len())
	}
	mustCheck(t, m)
	seen, nans := map[int]bool{}, 0
	for k, v := range m.All() {
		if k != k {
			nans++
			if seen[v] {
				t.Fatalf("NaN %d twice", v)
			}
			seen[v] = true
			m.Put(math.NaN(), n+nans) // grows tables under the loop
			if nans > 2*n {
				break
			}
		}
	}
	for v := range n {
		if nans <= 2*n && !seen[v] {
			t.Fatalf("no NaN %d", v)
		}
	}
	m.Clear()
	if m.Len() != 0 {
		t.Errorf("Clear leaves %d", m.Len())
	}
}

// A key whose bytes change after Put is not the map's.
func TestKeysAndValuesAreCopied(t *testing.T) {
	m := New[string, []byte](alloctest.New(t), nil)
	defer m.Close()
	key, value := []byte("key"), []byte("value")
	if err := PutBytes(m, key, value); err != nil {
		t.Fatal(err)
	}
	key[0], value[0] = 'x', 'x'
	got, ok := m.Get("key")
	if !ok || string(got) != "value" || cap(got) != 5 {
		t.Errorf("%q, %t", got, ok)
	}
	if _, ok := GetBytes(m, key); ok {
		t.Error("the map has the changed key")
	}
	if got, ok := GetBytes(m, []byte("key")); !ok || string(got) != "value" {
		t.Errorf("%q, %t", got, ok)
	}
	m.Put("key", nil)
	if got, ok := m.Get("key"); !ok || len(got) != 0 {
		t.Errorf("%q, %t", got, ok)
	}
}

// Strings of all lengths, around the one that no longer fits a reference too.
func TestLongStrings(t *testing.T) {
	m := New[string, string](alloctest.New(t), nil)
	defer m.Close()
	sizes := []int{0, 1, 7, 8, 9, 4095, longBytes - 1, longBytes, longBytes + 1, 1 << 20}
	for round := range 2 {
		for i, n := range sizes {
			if err := m.Put(strings.Repeat("k", n), strings.Repeat("v", sizes[(i+round)%len(sizes)])); err != nil {
				t.Fatal(err)
			}
		}
		for i, n := range sizes {
			if v, ok := m.Get(strings.Repeat("k", n)); !ok || v != strings.Repeat("v", sizes[(i+round)%len(sizes)]) {
				t.Errorf("a key of %d bytes: %d bytes, %t", n, len(v), ok)
			}
		}
		mustCheck(t, m)
	}
	for _, n := range sizes {
		if !m.Delete(strings.Repeat("k", n)) {
			t.Errorf("no key of %d bytes", n)
		}
	}
	mustCheck(t, m)
}

func TestAt(t *testing.T) {
	words, texts := New[int, int](alloctest.New(t), nil), New[string, int](alloctest.New(t), nil)
	defer words.Close()
	defer texts.Close()
	words.Put(1, 2)
	texts.Put("1", 2)
	*words.At(1)++
	*texts.At("1")++
	if v, _ := words.Get(1); v != 3 || words.At(2) != nil {
		t.Errorf("%d", v)
	}
	if v, _ := texts.Get("1"); v != 3 || texts.At("2") != nil {
		t.Errorf("%d", v)
	}
}

func TestGrowMakesRoom(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 100, 1000, 30_000} {
		for _, before := range []int{0, 5, 2000} {
			m := New[int, int](alloctest.New(t), nil)
			m.hash.seed = hash.SeedFrom(rand.New(rand.NewPCG(1, 1)).Uint64) // one map in 300 grows a table
			for i := range before {
				m.Put(-1-i, i)
			}
			if err := m.Grow(n); err != nil {
				t.Fatal(err)
			}
			was := m.Stats()
			for i := range n {
				m.Put(i, i)
			}
			st := m.Stats()
			if moved := st.Moved - was.Moved; moved > n/8 || st.Slots > max(4*(n+before), 14) {
				t.Errorf("Grow(%d) with %d: %+v, then %+v", n, before, was, st)
			}
			mustCheck(t, m)
			m.Close()
		}
	}
	m := New[int, int](alloctest.New(t), nil)
	m.Put(1, 1)
	if err := m.Grow(math.MaxInt); !errors.Is(err, freehold.ErrOutOfMemory) || m.Stats().Slots != slotsPerGroup {
		t.Errorf("error %v", err)
	}
	m.Close()
}

func TestIterationEnds(t *testing.T) {
	a := alloctest.New(t)
	for name, end := range map[string]func(m *Map[int, string]){
		"Clear": func(m *Map[int, string]) { m.Clear() },
		"Close": func(m *Map[int, string]) { m.Close() },
		"Clear after growth": func(m *Map[int, string]) {
			for i := range 5000 {
				m.Put(i, "more")
			}
			m.Clear()
		},
		"Close after growth": func(m *Map[int, string]) {
			for i := range 5000 {
				m.Put(i, "more")
			}
			m.Close()
		},
	} {
		m := New[int, string](a, nil)
		for i := range 100 {
			m.Put(i, "text")
		}
		n := 0
		for range m.All() {
			for range m.Keys() { // an inner loop has a cursor of its own
				break
			}
			n++
			end(m)
			if strings.HasPrefix(name, "Close") && m.Stats().Reserved != 0 {
				t.Errorf("%s in a loop leaves %+v", name, m.Stats())
			}
		}
		if n != 1 {
			t.Errorf("%s: %d entries", name, n)
		}
		m.Close()
	}
}

func TestKeysAndValues(t *testing.T) {
	m := New[int, int](alloctest.New(t), nil)
	defer m.Close()
	sum := 0
	for i := range 100 {
		m.Put(i, 1000)
	}
	for k := range m.Keys() {
		sum += k
	}
	for v := range m.Values() {
		sum += v
	}
	if sum != 99*50+100_000 {
		t.Error(sum)
	}
}

// Iterations begin somewhere else each time.
func TestIterationOrderVaries(t *testing.T) {
	m := New[int, int](alloctest.New(t), nil)
	defer m.Close()
	for i := range 10_000 { // several tables, whatever the size of an int
		m.Put(i, i)
	}
	firsts, tables := map[int]bool{}, map[table]bool{}
	for range 100 {
		for k := range m.All() {
			firsts[k] = true
			tables[m.tableOf(hashOf(&m.hash, &k))] = true
			break
		}
	}
	if len(firsts) < 5 || len(tables) < 2 {
		t.Errorf("%d first keys in %d tables in 100 loops", len(firsts), len(tables))
	}
}

// A loop yields the NaNs of a table that has grown since.
func TestLoopYieldsNaNsOfATableThatGrew(t *testing.T) {
	const n = 20
	m := New[float64, int](alloctest.New(t), nil)
	defer m.Close()
	for i := range n {
		m.Put(math.NaN(), i)
	}
	seen := map[int]int{}
	for k, v := range m.All() {
		if len(seen) == 0 {
			for i := range 500 {
				m.Put(float64(i), n)
			}
		}
		if k != k {
			seen[v]++
		}
	}
	for i := range n {
		if seen[i] != 1 {
			t.Errorf("NaN %d is seen %d times", i, seen[i])
		}
	}
}

// A loop yields the key that the last Put has left, also if the table has grown since.
func TestLoopYieldsTheKeyOfTheLastPut(t *testing.T) {
	for _, grows := range []int{0, 100} {
		m := New[float64, int](alloctest.New(t), nil)
		m.Put(1, 1) // the first slot of the only group
		m.Put(0, 1)
		for k, v := range m.All() {
			if k == 1 {
				for i := range grows {
					m.Put(float64(10+i), 3)
				}
				m.Put(math.Copysign(0, -1), 2)
			}
			if k == 0 && (!math.Signbit(k) || v != 2) {
				t.Errorf("after %d more: %v, %d", grows, k, v)
			}
		}
		m.Close()
	}
}

// A map whose hashes are all alike works, and its directory stays small.
func TestCollidingHashes(t *testing.T) {
	for i, narrow := range narrows {
		m := New[uint64, uint64](alloctest.New(t), nil)
		m.hash.narrow = narrow
		const n = 500
		for k := range uint64(n) {
			m.Put(k, k)
		}
		mustCheck(t, m)
		for k := range uint64(2 * n) {
			if v, ok := m.Get(k); ok != (k < n) || ok && v != k {
				t.Fatalf("narrow %d: %d is %d, %t", i, k, v, ok)
			}
		}
		if st := m.Stats(); st.Slots > 16*n || 1<<m.depth() > 1024 {
			t.Errorf("narrow %d: %+v, depth %d", i, st, m.depth())
		}
		for k := range uint64(n) {
			if k%3 == 0 && !m.Delete(k) {
				t.Fatalf("narrow %d: no %d", i, k)
			}
		}
		mustCheck(t, m)
		m.Close()
	}
}
