package hashmap

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/hash"
)

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
	if st := m.Stats(); st.Reserved != lineBytes+16*16+2*bits.UintSize/8 || c.Counts().LiveBytes != st.Reserved {
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
	mustBeWhole(t, m)
	m.Close()
	if closed, want := m.Stats(), (Stats{Moved: st.Moved}); closed != want {
		t.Errorf("Close leaves %+v", closed)
	}
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
	slots := int(classes[m.limits[0]].groups) * groupSlots
	was := Stats{}
	for i := range 100_000 {
		m.Put(key(i), v)
		st := m.Stats()
		if moved := st.Moved - was.Moved; moved > slots {
			t.Fatalf("Put %d moves %d entries; a table has %d slots", i, moved, slots)
		}
		directory := 8 << m.depth()
		if grown := st.Reserved - was.Reserved; grown > max(tableBytes, minGroups*int(m.groupBytes+headBytes))+directory+500 {
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
	mustBeWhole(t, m)
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
			if moved := st.Moved - was.Moved; moved > n/8 || st.Slots > max(4*(n+before), groupSlots) {
				t.Errorf("Grow(%d) with %d: %+v, then %+v", n, before, was, st)
			}
			mustBeWhole(t, m)
			m.Close()
		}
	}
	m := New[int, int](alloctest.New(t), nil)
	if err := m.Grow(0); err != nil || m.Stats().Reserved != 0 {
		t.Errorf("Grow(0) takes %d bytes: %v", m.Stats().Reserved, err)
	}
	m.Put(1, 1)
	if err := m.Grow(math.MaxInt); !errors.Is(err, freehold.ErrOutOfMemory) || m.Stats().Slots != groupSlots {
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
			if strings.HasPrefix(name, "Close") && m.Stats().Reserved != 0 || m.cursors != nil {
				t.Errorf("%s in a loop leaves %+v, and the cursor %v", name, m.Stats(), m.cursors)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d entries", name, n)
		}
		m.Close()
	}
}

// Loops that overlap end in any order, and growth then still copies the table of each that is left.
func TestPulledLoopsEndInAnyOrder(t *testing.T) {
	const n, loops = groupSlots, 3
	for ended := range loops {
		m := New[int, string](alloctest.New(t), nil)
		for i := range n {
			m.Put(i, "text")
		}
		var next [loops]func() (int, string, bool)
		var stop [loops]func()
		var seen [loops]map[int]bool
		for i := range loops {
			next[i], stop[i] = iter.Pull2(m.All())
			k, _, _ := next[i]()
			seen[i] = map[int]bool{k: true}
		}
		stop[ended]()
		for i := range 100 { // the table grows
			m.Put(n+i, "text")
		}
		for i := range loops {
			for k, v, ok := next[i](); ok; k, v, ok = next[i]() {
				if seen[i][k] || v != "text" {
					t.Fatalf("loop %d yields %d, %q after loop %d ended", i, k, v, ended)
				}
				seen[i][k] = true
			}
			if i != ended && len(seen[i]) < n {
				t.Errorf("loop %d has yielded %d entries after loop %d ended, want %d", i, len(seen[i]), ended, n)
			}
		}
		mustBeWhole(t, m)
		m.Close()
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
	t.Run("words", func(t *testing.T) { keyOfTheLastPut(t, 1, 2) })
	t.Run("strings", func(t *testing.T) { keyOfTheLastPut(t, "1", "2") })
	t.Run("large", func(t *testing.T) { keyOfTheLastPut(t, largeOf(1), largeOf(2)) })
}

func keyOfTheLastPut[V comparable](t *testing.T, before, last V) {
	for _, grows := range []int{0, 100} {
		var m *Map[float64, V]
		for first := 0.0; first == 0; { // until the map has 1 in front of 0
			m = New[float64, V](alloctest.New(t), nil)
			m.Put(1, before)
			m.Put(0, before)
			for k := range m.Keys() {
				first = k
				break
			}
			if first == 0 {
				m.Close()
			}
		}
		for k, v := range m.All() {
			if k == 1 {
				for i := range grows {
					m.Put(float64(10+i), before)
				}
				m.Put(math.Copysign(0, -1), last)
			}
			if k == 0 && (!math.Signbit(k) || v != last) {
				t.Errorf("after %d more: %v, %v", grows, k, v)
			}
		}
		m.Close()
	}
}
