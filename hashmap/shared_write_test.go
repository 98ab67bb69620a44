package hashmap

import (
	"errors"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// TestSharedTextIsTheCallers: text that calls return outlives its entry and the map.
func TestSharedTextIsTheCallers(t *testing.T) {
	m := NewShared[string, string](alloctest.New(t), nil)
	succeed(m.Put("the key", "the value"))
	got, _ := m.Get("the key")
	absent, _, err := m.PutIfAbsent("the key", "another")
	var updated string
	succeed(errors.Join(err, m.Update("the key", func(v *string, _ bool) { updated = *v })))
	var keys, values []string
	for k, v := range m.All() {
		keys, values = append(keys, k), append(values, v)
	}
	m.Close() // which frees the text, and alloctest fills it
	for call, v := range map[string]string{"Get": got, "PutIfAbsent": absent, "Update": updated, "All": values[0]} {
		if v != "the value" {
			t.Errorf("%s returned %q", call, v)
		}
	}
	if keys[0] != "the key" {
		t.Errorf("All has the key %q", keys[0])
	}
}

// TestSharedSlotsAreReused: neither a key that comes and goes nor a map that is cleared
// takes another table.
func TestSharedSlotsAreReused(t *testing.T) {
	m := NewShared[int, int](alloctest.New(t), nil)
	defer m.Close()
	m.hasher.narrow = 1<<64 - 1 // all in one table, of 7 slots
	for range 100 {
		succeed(m.Put(1, 1))
		m.Delete(1)
	}
	for range 100 {
		for k := range 5 {
			succeed(m.Put(k, k))
		}
		m.Clear()
		m.checkAll()
	}
	if st := m.Stats(); st.Spare != 0 || st.Tables != 1 || st.Len != 0 {
		t.Errorf("%+v", st)
	}
}

// TestSharedPutIfAbsentRunsOutOfMemory: without memory there is no value.
func TestSharedPutIfAbsentRunsOutOfMemory(t *testing.T) {
	m := NewShared[int, string](alloctest.FailAfter(alloctest.New(t), 2), nil) // directory and table
	defer m.Close()
	v, found, err := m.PutIfAbsent(1, "one")
	if v != "" || found || !errors.Is(err, freehold.ErrOutOfMemory) || m.Len() != 0 {
		t.Errorf("%q, %t, %v, %d entries", v, found, err, m.Len())
	}
}

// TestSharedPutIfAbsentLeavesAValue: it needs no memory where there is one.
func TestSharedPutIfAbsentLeavesAValue(t *testing.T) {
	m := NewShared[int, string](alloctest.FailAfter(alloctest.New(t), 3), nil) // directory, table and text
	defer m.Close()
	succeed(m.Put(1, "one"))
	if v, found, err := m.PutIfAbsent(1, "another"); v != "one" || !found || err != nil {
		t.Errorf("%q, %t, %v", v, found, err)
	}
}

// largestClass returns the class of the map's largest table.
func largestClass(m *Shared[uint64, uint64]) (class uintptr) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.each(func(e uintptr) { class = max(class, classOf(e)) })
	return class
}

// TestSharedChurnCopiesTables: a table whose slots deleted entries have taken is replaced
// by one of its size.
func TestSharedChurnCopiesTables(t *testing.T) {
	m := NewShared[uint64, uint64](alloctest.New(t), nil)
	defer m.Close()
	m.hasher.narrow = 1<<64 - 1 // all pass the same groups, so slots are not free at once
	const live = 40
	for k := range uint64(live) {
		succeed(m.Put(k, k))
	}
	class := largestClass(m)
	for k := range uint64(2000) {
		m.Delete(k)
		succeed(m.Put(k+live, k))
	}
	m.checkAll()
	if now := largestClass(m); now != class || m.Len() != live {
		t.Errorf("%d entries in a table of class %d, which was %d", m.Len(), now, class)
	}
	if st := m.Stats(); st.Spare == 0 {
		t.Errorf("no table was replaced: %+v", st)
	}
}

// alike returns n keys from first on whose hashes begin with 12 zeros.
func alike(m *Shared[uint64, uint64], first uint64, n int) (keys []uint64) {
	for k := first; len(keys) < n; k++ {
		if hashOf(&m.hasher, &k)>>(64-12) == 0 {
			keys = append(keys, k)
		}
	}
	return keys
}

// TestSharedLargeTablesSplit: a table that has grown beyond the largest class, because its
// hashes agree, goes on as one when the directory is large enough to split it.
func TestSharedLargeTablesSplit(t *testing.T) {
	for name, others := range map[string]func(m *Shared[uint64, uint64]) uint64{
		"Put": func(m *Shared[uint64, uint64]) uint64 {
			const n = 50_000
			for k := range uint64(n) {
				succeed(m.Put(1<<40+k, k))
			}
			return n
		},
		"Grow": func(m *Shared[uint64, uint64]) uint64 { succeed(m.Grow(200_000)); return 0 },
	} {
		m := NewShared[uint64, uint64](alloctest.New(t), nil)
		keys := alike(m, 0, 4000)
		for _, k := range keys[:2000] {
			succeed(m.Put(k, k))
		}
		if class := largestClass(m); class <= m.maxClass {
			t.Fatalf("the largest class is %d", class)
		}
		n := others(m)
		for _, k := range keys[2000:] {
			succeed(m.Put(k, k))
		}
		m.checkAll()
		for _, k := range keys {
			if v, found := m.Get(k); !found || v != k {
				t.Fatalf("%s: Get(%d) = %d, %t", name, k, v, found)
			}
		}
		if m.Len() != len(keys)+int(n) {
			t.Errorf("%s: %d entries", name, m.Len())
		}
		m.Close()
	}
}

// TestSharedHasADirectoryForEachDepth: none is replaced by one of the same depth.
func TestSharedHasADirectoryForEachDepth(t *testing.T) {
	m := NewShared[int, int](alloctest.New(t), nil)
	defer m.Close()
	for k := range 20_000 {
		succeed(m.Put(k, k))
	}
	if n, depths := len(m.dirs), int(depthOf(m.dir.Load())-m.firstDepth())+1; n > depths {
		t.Errorf("%d directories of %d depths", n, depths)
	}
}

// TestSharedSplitRunsOutOfMemory: each allocation of a table that splits, with a directory
// that doubles, fails once. Nothing has changed then, and the next Put succeeds.
func TestSharedSplitRunsOutOfMemory(t *testing.T) {
	for n := 0; ; n++ {
		m := NewShared[uint64, uint64](alloctest.FailOnce(alloctest.New(t), n), nil)
		m.hasher.narrow = 0xFF << 56 // all in one table, until the directory has 2^8 entries
		const keys = 1000
		failed := false
		for k := range uint64(keys) {
			err := m.Put(k, ^k)
			if err == nil {
				continue
			}
			if failed = true; !errors.Is(err, freehold.ErrOutOfMemory) || m.Len() != int(k) {
				t.Fatalf("%v, and %d entries, want %d", err, m.Len(), k)
			}
			m.checkAll()
			succeed(m.Put(k, ^k))
		}
		m.checkAll()
		for k := range uint64(keys) {
			if v, found := m.Get(k); !found || v != ^k {
				t.Fatalf("failure %d: Get(%d) = %d, %t", n, k, v, found)
			}
		}
		if !failed && len(m.dirs) < 3 {
			t.Errorf("%d directories", len(m.dirs))
		}
		m.Close()
		if !failed {
			break
		}
	}
}
