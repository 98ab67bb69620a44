package btree

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
)

// mustPanic checks that f panics with a message that contains want.
func mustPanic(t *testing.T, want string, f func()) {
	t.Helper()
	panics.Want(t, "..."+want+"...", f)
}

type withString struct{ s string }

func TestMisuse(t *testing.T) {
	heap := alloctest.New(t)
	mustPanic(t, "freehold: btree.New[V=withString]: field s is a string", func() { New[int, withString](heap, nil) })
	mustPanic(t, "freehold: btree.NewFunc[K=withString]: field s is a string", func() {
		NewFunc[withString, int](heap, func(a, b withString) int { return 0 }, nil)
	})
	mustPanic(t, "freehold: btree.NewFunc[K=string]: it is a string", func() { NewFunc[string, int](heap, strings.Compare, nil) })
	mustPanic(t, "freehold: btree.NewFunc: compare is nil", func() { NewFunc[int, int](heap, nil, nil) })
	mustPanic(t, "freehold: btree.New: a K or V of 16777217 bytes, want 16777216 or less", func() { New[int, [maxBytes + 1]byte](heap, nil) })

	m := New[int, int](heap, nil)
	mustPanic(t, "freehold: btree.Map.DeleteFunc: del is nil", func() { m.DeleteFunc(nil) })
	mustPanic(t, "freehold: btree.Map.Load: entries is nil", func() { _ = m.Load(nil) })
	m.Close()
	for call, f := range map[string]func(){
		"Get": func() { m.Get(0) }, "At": func() { m.At(0) }, "Put": func() { _ = m.Put(0, 0) },
		"PutIfAbsent": func() { _, _, _ = m.PutIfAbsent(0, 0) },
		"Update":      func() { _ = m.Update(0, func(*int, bool) {}) },
		"Compute":     func() { _, _, _ = m.Compute(0, func(*int, bool) freehold.Change { return freehold.Keep }) },
		"Take":        func() { m.Take(0) }, "Delete": func() { m.Delete(0) },
		"DeleteRange": func() { m.DeleteRange(0, 1) },
		"DeleteFunc":  func() { m.DeleteFunc(func(int, *int) bool { return true }) },
		"GetAt":       func() { m.GetAt(0) }, "Rank": func() { m.Rank(0) }, "Min": func() { m.Min() }, "Max": func() { m.Max() },
		"Clear": func() { m.Clear() }, "Clone": func() { m.Clone() }, "Load": func() { _ = m.Load(func(func(int, int) bool) {}) },
	} {
		mustPanic(t, "freehold: btree.Map."+call+": the map is closed", f)
	}
}

// TestFunctionsMustNotChangeTheMap: what DeleteFunc and Load call may read it.
func TestFunctionsMustNotChangeTheMap(t *testing.T) {
	m := New[int, int](alloctest.New(t), nil)
	defer m.Close()
	_ = m.Put(1, 10)
	inside := func() {
		mustPanic(t, "btree.Map.Put: a function", func() { m.Put(1, 1) })
		if v, ok := m.Get(1); !ok || v != 10 {
			t.Errorf("Get in a function is %d, %t", v, ok)
		}
	}
	m.DeleteFunc(func(int, *int) bool { inside(); return false })
	c := m.Clone()
	_ = m.Update(1, func(*int, bool) {
		mustPanic(t, "btree.Map.At: a function", func() { m.At(1) }) // it may copy the leaf
	})
	c.Close()
	_ = m.Load(func(func(int, int) bool) { inside() })
	if err := m.Put(3, 3); err != nil || m.Len() != 2 {
		t.Errorf("afterwards Put: %v, Len is %d", err, m.Len())
	}
}

// TestFloats has all that is special among floats, and much that is not, in random order.
func TestFloats(t *testing.T) {
	special := []float64{math.NaN(), math.Float64frombits(0xFFF8000000000123), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1),
		math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64}
	r := rand.New(rand.NewPCG(3, 3))
	for _, more := range []int{0, 5, 70, 2000} {
		m := New[float64, float64](alloctest.New(t), nil)
		keys := slices.Clone(special)
		for range more {
			keys = append(keys, r.NormFloat64())
		}
		r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		for i, k := range keys {
			if err := m.Put(k, float64(i)); err != nil {
				t.Fatal(err)
			}
			m.check()
		}
		want := slices.Clone(keys)
		slices.SortFunc(want, cmp.Compare)
		want = slices.CompactFunc(want, func(a, b float64) bool { return cmp.Compare(a, b) == 0 })
		var got []float64
		for k := range m.All() {
			got = append(got, k)
		}
		if !slices.EqualFunc(got, want, func(a, b float64) bool { return cmp.Compare(a, b) == 0 }) {
			t.Fatalf("%d keys: All is not as cmp.Compare sorts", len(keys))
		}
		if n := m.DeleteRange(math.NaN(), math.Inf(-1)); n != 1 {
			t.Errorf("%d entries from NaN up to -Inf, want 1", n)
		}
		_ = m.Put(math.NaN(), 1)
		for n := range m.BackwardFrom(math.NaN()) {
			if n == n {
				t.Errorf("BackwardFrom(NaN) yields %v", n)
			}
		}
		for _, k := range keys {
			_, ok := m.Get(k)
			if deleted := m.Delete(k); ok != deleted && k != math.Inf(-1) {
				t.Errorf("Get finds %v: %t, and Delete: %t", k, ok, deleted)
			}
			m.check()
		}
		if m.Len() != 0 {
			t.Errorf("%d entries are left when all keys are deleted", m.Len())
		}
		m.Close()
	}
}

// TestOrdersOfDeletion deletes all keys in several orders, and looks at the memory.
func TestOrdersOfDeletion(t *testing.T) {
	n := 5000
	if testing.Short() {
		n = 1500
	}
	r := rand.New(rand.NewPCG(5, 5))
	ascending := make([]int, n)
	for i := range ascending {
		ascending[i] = i
	}
	descending := slices.Clone(ascending)
	slices.Reverse(descending)
	random := r.Perm(n)
	var fromMiddle, fromEnds, strided []int
	for i := range n / 2 {
		fromMiddle = append(fromMiddle, n/2-1-i, n/2+i)
		fromEnds = append(fromEnds, i, n-1-i)
	}
	for first := range 61 {
		for i := first; i < n; i += 61 {
			strided = append(strided, i)
		}
	}
	orders := map[string][]int{"ascending": ascending, "descending": descending, "random": random,
		"from the middle": fromMiddle, "from the ends": fromEnds, "strided": strided}
	for insertion, puts := range orders {
		for deletion, deletes := range orders {
			m := New[int, [20]byte](alloctest.New(t), nil)
			for _, k := range puts {
				if err := m.Put(k, [20]byte{byte(k)}); err != nil {
					t.Fatal(err)
				}
			}
			for i, k := range deletes {
				if !m.Delete(k) {
					t.Fatalf("inserted %s, deleted %s: key %d is gone", insertion, deletion, k)
				}
				if i%257 == 0 {
					m.check()
				}
				st := m.Stats()
				if bound := 3*st.Len + 2*st.Height*m.leaf.slots; st.Slots > bound {
					t.Fatalf("inserted %s, deleted %s: %d slots for %d entries, want at most %d", insertion, deletion, st.Slots, st.Len, bound)
				}
			}
			if st := m.Stats(); st != (Stats{}) {
				t.Errorf("inserted %s, deleted %s: an empty map has %+v", insertion, deletion, st)
			}
			m.Close()
		}
	}
}

// TestChurnTakesNoMoreMemory: a window that moves over the keys, and random ones that
// replace each other.
func TestChurnTakesNoMoreMemory(t *testing.T) {
	const live = 2000
	r := rand.New(rand.NewPCG(7, 7))
	next := map[string]func(i int) uint64{
		"a window": func(i int) uint64 { return uint64(i) },
		"random":   func(i int) uint64 { return r.Uint64() },
		"backward": func(i int) uint64 { return 1<<40 - uint64(i) },
	}
	for name, next := range next {
		m := New[uint64, uint64](alloctest.New(t), nil)
		var keys []uint64
		most := 0
		for i := range 30 * live {
			k := next(i)
			keys = append(keys, k)
			if err := m.Put(k, 0); err != nil {
				t.Fatal(err)
			}
			if i >= live {
				m.Delete(keys[i-live])
				most = max(most, m.Stats().Reserved)
			}
		}
		m.check()
		if want := 3 * live * 16; most > want {
			t.Errorf("%s: %d bytes for %d entries of 16, want at most %d", name, most, live, want)
		}
		m.Close()
	}
}

// TestNodesAreFull: how full they are depends on the order of insertion.
func TestNodesAreFull(t *testing.T) {
	const n = 20_000
	r := rand.New(rand.NewPCG(9, 9))
	for _, test := range []struct {
		name    string
		keys    func(m *Map[int, int])
		percent int
	}{
		{"ascending Put", func(m *Map[int, int]) {
			for i := range n {
				_ = m.Put(i, i)
			}
		}, 98},
		{"Load", func(m *Map[int, int]) {
			_ = m.Load(func(yield func(int, int) bool) {
				for i := 0; i < n && yield(i, i); i++ {
				}
			})
		}, 98},
		{"random Put", func(m *Map[int, int]) {
			for _, i := range r.Perm(n) {
				_ = m.Put(i, i)
			}
		}, 60}, // 69 of many nodes; these are some hundred, all split at about the same time
	} {
		m := New[int, int](alloctest.New(t), nil)
		test.keys(m)
		m.check()
		if st := m.Stats(); st.Len != n || st.Len*100/st.Slots < test.percent {
			t.Errorf("%s: %d entries in %d slots, want %d%%", test.name, st.Len, st.Slots, test.percent)
		}
		m.Close()
	}
}

func TestIterationOverAMapThatEnds(t *testing.T) {
	type Ints = Map[int, int]
	for name, end := range map[string]func(*Ints){"Clear": (*Ints).Clear, "Close": (*Ints).Close} {
		for _, walk := range []func(*Ints) iter.Seq2[int, int]{(*Ints).All, (*Ints).Backward,
			func(m *Ints) iter.Seq2[int, int] { return m.From(3) },
			func(m *Ints) iter.Seq2[int, int] { return m.BackwardFrom(5) },
			func(m *Ints) iter.Seq2[int, int] { return m.Range(2, 5) },
		} {
			m := New[int, int](alloctest.New(t), nil)
			for i := range 10 {
				_ = m.Put(i, i)
			}
			seen := 0
			for range walk(m) {
				seen++
				end(m)
			}
			if seen != 1 {
				t.Errorf("%d entries are seen, and %s was called at the first", seen, name)
			}
			m.Close()
		}
	}
}

// TestSeveralReaders: the race detector finds writes of calls that must only read.
func TestSeveralReaders(t *testing.T) {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	m := New[int, int](heap, nil)
	defer m.Close()
	texts := New[string, int](heap, nil)
	defer texts.Close()
	const n = 3000
	for i := range n {
		_ = m.Put(i, i)
		_ = texts.Put(textKeys[i], i)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			sum := 0
			for i := range n {
				v, _ := m.Get(i)
				w, _ := texts.Get(textKeys[i])
				sum += v + w + *m.At(i)
			}
			for _, v := range m.All() {
				sum += v
			}
			for _, v := range texts.BackwardFrom("1") {
				sum += v
			}
			for k := range m.Range(100, 200) {
				sum += k
			}
			_, _, _ = m.Min()
			_, _, _ = texts.Max()
			if m.Stats().Len != n || m.Len() != n || sum == 0 {
				t.Error("a reader sees another map")
			}
		})
	}
	wg.Wait()
}

// TestKeysOfTheMapAsArguments: calls that delete a string may be given that very string.
func TestKeysOfTheMapAsArguments(t *testing.T) {
	m := New[string, int](alloctest.New(t), nil)
	defer m.Close()
	for i, k := range textKeys {
		_ = m.Put(k, i)
	}
	for k := range m.All() {
		if !m.Delete(k) {
			t.Fatal("a key of All is gone")
		}
		if m.Len()%7 == 0 {
			break
		}
	}
	lo, _, _ := m.Min()
	hi, _, _ := m.Max()
	if n, want := m.DeleteRange(lo, hi), m.Len(); n == 0 || want != 1 {
		t.Errorf("DeleteRange from the first to the last key deletes %d entries and leaves %d, want 1", n, want)
	}
}

// TestDeleteFuncEnds: also if compare leads to the first leaf whatever the key.
func TestDeleteFuncEnds(t *testing.T) {
	broken := false
	m := NewFunc[int, int](alloctest.New(t), func(a, b int) int {
		if broken {
			return 1
		}
		return cmp.Compare(a, b)
	}, nil)
	const n = 1000
	for i := range n {
		_ = m.Put(i, i)
	}
	broken = true
	calls := 0
	m.DeleteFunc(func(int, *int) bool {
		if calls++; calls > n+m.leaf.slots {
			t.Fatalf("%d calls for %d entries", calls, n)
		}
		return false
	})
	broken = false
	m.Close()
}

// A cursor reads no value of a map whose parent is closed.
func TestCursorWithoutAParent(t *testing.T) {
	heap := freehold.NewHeap(nil)
	m := New[int, int](heap, nil)
	_ = m.Put(1, 1)
	c := m.Cursor()
	c.First()
	heap.Close()
	mustPanic(t, "freehold: btree.Map.Cursor.Value: heap", func() { c.Value() })
}

// TestCompareWithoutAnOrder: nothing is lost, nothing is found beyond a node, and each call
// returns.
func TestCompareWithoutAnOrder(t *testing.T) {
	for _, ranks := range []bool{false, true} {
		for _, cloned := range []bool{false, true} {
			t.Run(fmt.Sprint("ranks=", ranks, " cloned=", cloned), func(t *testing.T) { testCompareWithoutAnOrder(t, ranks, cloned) })
		}
	}
}

func testCompareWithoutAnOrder(t *testing.T, ranks, cloned bool) {
	r := rand.New(rand.NewPCG(13, 13))
	fails := false
	m := NewFunc[uint64, uint64](alloctest.New(t), func(a, b uint64) int {
		if fails && r.IntN(20) == 0 {
			panic("mine")
		}
		return r.IntN(3) - 1
	}, &Options{Ranks: ranks})
	try := func(f func()) {
		defer func() {
			if p := recover(); p != nil && p != "mine" {
				panic(p)
			}
		}()
		f()
	}
	for i := range uint64(30_000) {
		if cloned && i%100 == 0 {
			defer m.Clone().Close()
		}
		fails = i%2 == 0
		try(func() { _ = m.Put(i, i) })
		try(func() { _ = m.Update(i, func(*uint64, bool) {}) })
		try(func() { m.Compute(i, func(*uint64, bool) freehold.Change { return freehold.Change(i % 3) }) })
		if ranks {
			try(func() { m.GetAt(int(i) % (m.Len() + 1)); m.Rank(i) })
		}
		if i > 20_000 {
			try(func() { m.Delete(i); m.Delete(i + 1); m.Delete(i + 2) })
		}
		if i%1000 == 0 {
			try(func() { m.DeleteFunc(func(k uint64, _ *uint64) bool { return k%7 == 0 }) })
			try(func() { m.DeleteRange(i, i+10) })
			try(func() {
				_ = m.Load(func(yield func(uint64, uint64) bool) {
					for i := range uint64(100) {
						if !yield(i, i) {
							return
						}
					}
				})
			})
		}
	}
	m.Close()
}

func TestCursorWithoutAKey(t *testing.T) {
	m := New[string, int](alloctest.New(t), nil)
	c := m.Cursor()
	check := func(moves ...bool) {
		t.Helper()
		if slices.Contains(moves, true) {
			t.Error("a cursor of an empty map moves to a key")
		}
		mustPanic(t, "freehold: btree.Cursor.Key: the cursor is at no key", func() { c.Key() })
		mustPanic(t, "freehold: btree.Cursor.Value: the cursor is at no key", func() { c.Value() })
	}
	check()
	check(c.Next(), c.Next(), c.Prev(), c.Prev(), c.First(), c.Last(), c.Seek(""))
	_ = m.Put("", 7)
	if c.Next() || !c.Prev() || c.Key() != "" || *c.Value() != 7 || c.Prev() || c.Prev() || !c.Next() {
		t.Error("the cursor does not find the key of no bytes")
	}
	m.Clear()
	if c.Key() != "" || c.Value() != nil || c.Next() {
		t.Error("the cursor has lost its key")
	}
	_ = m.Put("a", 1)
	c.First()
	m.Close()
	if c.Key() != "a" {
		t.Error("the cursor has no key after Close")
	}
	for call, f := range map[string]func(){
		"Map.Cursor": func() { m.Cursor() }, "Cursor.Seek": func() { c.Seek("") }, "Cursor.First": func() { c.First() }, "Cursor.Last": func() { c.Last() },
		"Cursor.Next": func() { c.Next() }, "Cursor.Prev": func() { c.Prev() }, "": func() { c.Value() },
	} {
		mustPanic(t, call, f)
	}
}
