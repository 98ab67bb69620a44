package btree

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// Goroutines change clones of one map, and clones of these. Each clone has its own entries, in
// whatever order the maps are closed, and all memory is freed.
func TestClonesAtOnce(t *testing.T) {
	t.Run("uint64", func(t *testing.T) { clonesAtOnce(t, func(i int) uint64 { return uint64(i) }) })
	t.Run("string", func(t *testing.T) { clonesAtOnce(t, func(i int) string { return fmt.Sprintf("%08d", i) }) })
}

func clonesAtOnce[K cmp.Ordered](t *testing.T, key func(int) K) {
	const keys = 4000
	first, want := New[K, int](alloctest.New(t), &Options{Ranks: true}), map[K]int{}
	for i := range keys / 2 {
		want[key(2*i)] = i
		if err := first.Put(key(2*i), i); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	defer all.Wait()
	var change func(m *Map[K, int], want map[K]int, seed uint64)
	change = func(m *Map[K, int], want map[K]int, seed uint64) {
		defer m.Close()
		r := rand.New(rand.NewPCG(seed, 1))
		for i := range 600 {
			k := key(r.IntN(keys))
			switch r.IntN(4) {
			case 0:
				if p := m.At(k); p != nil {
					*p, want[k] = i, i
				}
			case 1:
				m.Delete(k)
				delete(want, k)
			default:
				if want[k] = i; m.Put(k, i) != nil {
					t.Error("no memory")
				}
			}
			if i == 300 && seed < 4 {
				clone, theirs := m.Clone(), maps.Clone(want)
				all.Go(func() { change(clone, theirs, seed+4) })
			}
		}
		if m.check(); !maps.Equal(maps.Collect(m.All()), want) {
			t.Errorf("clone %d has other entries than were put", seed)
		}
	}
	for seed := range uint64(4) {
		m, theirs := first.Clone(), maps.Clone(want)
		all.Go(func() { change(m, theirs, seed) })
	}
	if !maps.Equal(maps.Collect(first.All()), want) {
		t.Error("the first map has changed")
	}
	first.Close()
}

// twoLeaves returns a map of two leaves with the keys from 0 on. The faucet has its memory.
func twoLeaves(t *testing.T) (*faucet, *Map[uint64, [600]byte]) {
	f := &faucet{alloctest.New(t), -1}
	m := New[uint64, [600]byte](f, nil)
	for i := range uint64(m.leaf.slots + 1) {
		_ = m.Put(i, [600]byte{})
	}
	return f, m
}

// Without memory for a copy of its neighbour, the last leaf stays with few entries. If a deletion
// leaves it without entries, the call panics and changes nothing.
func TestCloneDeletesWithoutMemory(t *testing.T) {
	f, m := twoLeaves(t)
	defer m.Close()
	n := uint64(m.Len())
	c := m.Clone()
	defer c.Close()
	f.left = 2 // the root and the last leaf, which has two entries
	if !c.Delete(n-1) || c.Stats().Leaves != 2 {
		t.Errorf("the map has %d leaves", c.Stats().Leaves)
	}
	c.check()
	cursor := c.Cursor()
	cursor.First()
	for _, test := range []struct {
		call string
		f    func()
	}{
		{"Delete", func() { c.Delete(n - 2) }},
		{"Take", func() { c.Take(n - 2) }},
		{"DeleteRange", func() { c.DeleteRange(n-2, n-1) }},
		{"DeleteFunc", func() { c.DeleteFunc(func(uint64, *[600]byte) bool { return true }) }},
		{"At", func() { c.At(0) }},
		{"At", func() { cursor.Value() }},
	} {
		const why = "freehold: out of memory: the faucet is closed: the map copies nodes that it shares with a clone"
		mustPanic(t, "freehold: btree.Map."+test.call+": "+why, test.f)
	}
	if _, ok := c.Get(n - 2); !ok || c.Len() != int(n-1) || m.Len() != int(n) {
		t.Errorf("there are %d entries, want %d", c.Len(), n-1)
	}
	f.left = -1
	if c.check(); !c.Delete(n-2) || c.Stats().Leaves != 1 {
		t.Errorf("the map has %d leaves", c.Stats().Leaves)
	}
	c.check()
	m.check()
}

// Any other leaf must not have too few entries. So without memory for a copy of its neighbour, a
// deletion panics and changes nothing.
func TestCloneDeletesInTheFirstLeafWithoutMemory(t *testing.T) {
	f, m := twoLeaves(t)
	defer m.Close()
	n := uint64(m.Len())
	m.DeleteRange(0, n-2-uint64(m.leaf.least)) // the last leaf has two entries
	c := m.Clone()
	defer c.Close()
	f.left = 2 // the root and the first leaf
	mustPanic(t, "freehold: btree.Map.Delete: freehold: out of memory", func() { c.Delete(n - 3) })
	if c.check(); c.Len() != m.leaf.least+2 || c.Stats().Leaves != 2 {
		t.Errorf("%d entries in %d leaves", c.Len(), c.Stats().Leaves)
	}
}

// DeleteFunc joins a leaf with a neighbour that is shared with a clone.
func TestCloneDeletesByFunction(t *testing.T) {
	m := New[int, int](alloctest.New(t), nil)
	defer m.Close()
	for i := range 3 * m.leaf.slots {
		_ = m.Put(i, i)
	}
	c := m.Clone()
	defer c.Close()
	most := m.leaf.slots - 1 // of the first leaf
	if n := c.DeleteFunc(func(k int, _ *int) bool { return k < most }); n != most || m.Len()-c.Len() != most {
		t.Errorf("%d entries are deleted, want %d", n, most)
	}
	c.check()
	m.check()
}

// Maps that share a root may be cloned at the same time.
func TestMapsOfOneRootAreCloned(t *testing.T) {
	m := New[int, int](alloctest.New(t), nil)
	defer m.Close()
	_ = m.Put(1, 1)
	c := m.Clone()
	defer c.Close()
	var all sync.WaitGroup
	defer all.Wait()
	for _, shared := range []*Map[int, int]{m, c} {
		all.Go(func() { shared.Clone().Close() })
	}
}

// In a cloned map, a compare that contradicts itself between the search for a key and that for its
// path neither leads to another entry, nor from leaf to leaf in a circle.
func TestPathsOfWrongCompare(t *testing.T) {
	left := -1 // calls of compare before it contradicts itself, unless negative
	m := NewFunc[int, int](alloctest.New(t), func(a, b int) int {
		if left == 0 {
			return 1 // the path leads to the first leaf
		}
		left--
		return cmp.Compare(a, b)
	}, nil)
	defer m.Close()
	for i := range 3 * m.leaf.slots {
		_ = m.Put(i, i)
	}
	defer m.Clone().Close()
	second := m.leaf.slots
	left = -1
	m.Get(second)
	left = -1 - left // the calls of its search
	if v := m.At(second); v != nil {
		t.Errorf("At of %d has the value %d", second, *v)
	}
	left = -1
	before := second - 1
	for k := range m.From(second) {
		if left = 0; k <= before {
			t.Fatalf("%d comes after %d", k, before)
		}
		before = k
	}
}

// A clone takes no memory, and a change takes only that of its copies: one node on each level.
func TestCloneCopiesWhatChanges(t *testing.T) {
	h := freehold.NewTagged(alloctest.New(t), "")
	m := New[uint64, uint64](h, nil)
	defer m.Close()
	for i := range uint64(100_000) {
		_ = m.Put(i, i)
	}
	live := h.Counts().LiveBytes
	c := m.Clone()
	defer c.Close()
	if n := h.Counts().LiveBytes; n != live {
		t.Errorf("Clone took %d bytes", n-live)
	}
	_ = c.Put(50_000, 0)
	_ = c.Put(50_001, 0)
	if n, want := h.Counts().LiveBytes-live, m.leaf.bytes+(m.height-1)*m.inner.bytes; n != want {
		t.Errorf("a change took %d bytes, want %d", n, want)
	}
	if v, _ := m.Get(50_000); v != 50_000 {
		t.Errorf("the value is %d in the map that was cloned", v)
	}
	st := m.Stats()
	c.Close()
	if n := h.Counts().LiveBytes; n != live || m.Stats() != st {
		t.Errorf("a closed clone leaves %d bytes", n-live)
	}
	mustPanic(t, "freehold: btree.Map.Clone: the map is closed", func() { c.Clone() })
	// Once it is empty, the map links its leaves again.
	for _, empty := range []func(){m.Clear, func() { m.DeleteRange(0, 1000) }} {
		m.Clone().Close()
		empty()
		for i := range uint64(1000) {
			_ = m.Put(i, i)
		}
		if m.check(); m.cloned || m.first().next == 0 {
			t.Error("the leaves of a map that was empty are not linked")
		}
	}
}

// A map that is cloned before each deletion joins its nodes as others do, in each order of
// deletions.
func TestCloneBeforeEachDelete(t *testing.T) {
	const keys = 200
	for _, step := range []int{1, keys - 1, 37} {
		m := NewFunc[bytes200, bytes200](alloctest.New(t), compare200, nil)
		for i := range keys {
			_ = m.Put(as200(i), as200(i))
		}
		if m.height < 3 {
			t.Errorf("the map has %d levels", m.height)
		}
		for i := range keys {
			c := m.Clone()
			if !m.Delete(as200(i * step % keys)) {
				t.Fatalf("deletion %d finds no entry", i)
			}
			m.check()
			c.check()
			if m.Len() != keys-1-i || c.Len() != keys-i {
				t.Fatalf("%d entries, and %d in the clone", m.Len(), c.Len())
			}
			c.Close()
		}
		m.Close()
	}
}

// A leaf without values has more keys than an inner node, and is joined while it has more keys than
// an inner node that is not. A deletion copies the neighbours on each level that join then changes.
func TestCloneOfKeysWithoutValues(t *testing.T) {
	m := New[uint64, struct{}](alloctest.New(t), nil)
	defer m.Close()
	const keys = 60_000
	for i := range uint64(keys) {
		if err := m.Put(i*0x9E3779B97F4A7C15, struct{}{}); err != nil {
			t.Fatal(err)
		}
	}
	if m.leaf.least <= m.inner.least || m.height < 3 {
		t.Fatalf("leaves of at least %d keys below nodes of %d; height %d", m.leaf.least, m.inner.least, m.height)
	}
	c := m.Clone()
	defer c.Close()
	for m.Len() > 0 {
		k, _, _ := m.Min()
		m.Delete(k)
	}
	if c.check(); c.Len() != keys {
		t.Errorf("the clone has %d keys, want %d", c.Len(), keys)
	}
}

// A cursor or an iterator in a shared leaf goes on in the copy that a Put makes: the old leaf may
// be freed.
func TestCursorInALeafThatIsCopied(t *testing.T) {
	m := New[uint64, uint64](alloctest.New(t), nil)
	defer m.Close()
	for i := range uint64(10) {
		_ = m.Put(i, i)
	}
	change := func(c *Map[uint64, uint64], k uint64) {
		_ = m.Put(k, 100)
		c.Close()
	}
	c, cursor := m.Clone(), m.Cursor()
	cursor.Seek(5)
	if change(c, 6); !cursor.Next() || cursor.Key() != 6 || *cursor.Value() != 100 {
		t.Errorf("the cursor is at %d", cursor.Key())
	}
	c = m.Clone()
	want := uint64(0)
	for k, v := range m.All() {
		if k == 4 {
			change(c, 8)
		}
		if k != want || k == 8 && v != 100 {
			t.Errorf("the iterator has %d, %d, want the key %d", k, v, want)
		}
		want++
	}
}

// If memory runs out while a leaf is copied, the strings copied so far are freed, but not the stale
// ones that a spare leaf has.
func TestCloneWithoutMemoryForStrings(t *testing.T) {
	f := &faucet{alloctest.New(t), -1}
	m := New[string, int](f, nil)
	defer m.Close()
	fill := func(n int) {
		for i := range n {
			_ = m.Put(fmt.Sprintf("key %08d", i), i)
		}
	}
	fill(m.leaf.slots * 3)
	m.Clear() // the spare leaves have strings that are freed
	const keys = 20
	fill(keys)
	c := m.Clone()
	defer c.Close()
	for left := range keys {
		st := m.Stats().Leaves
		f.left = left
		if err := m.Put("key 00000003", 1); !errors.Is(err, freehold.ErrOutOfMemory) || m.Stats().Leaves != st {
			t.Errorf("Put with %d allocations: %v", left, err)
		}
		f.left = -1
		m.check()
	}
	if err := m.Put("key 00000003", 1); err != nil {
		t.Error(err)
	}
	if v, _ := c.Get("key 00000003"); v != 3 {
		t.Errorf("the clone has the value %d", v)
	}
}
