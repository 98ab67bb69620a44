package hashmap

import (
	"math"
	"runtime"
	"testing"

	"github.com/freehold-go/freehold/alloctest"
)

// TestSharedSlotsAreReused: neither a key that comes and goes nor a map that is cleared
// takes another table.
func TestSharedSlotsAreReused(t *testing.T) {
	m := NewShared[int, int](alloctest.New(t), nil)
	defer m.Close()
	m.narrowBy(1<<64 - 1) // all in one group
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

// largestClass returns the class of the map's largest table.
func largestClass(m *Shared[uint64, uint64]) (class uintptr) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.each(func(t table) { class = max(class, t.class()) })
	return class
}

// TestSharedTableOfTheSameClass: a table whose entries have passed groups that have room again is
// replaced by one of its class, and by a larger one if that does not help.
func TestSharedTableOfTheSameClass(t *testing.T) {
	const class, groups = 19, 24
	for call, put := range map[string]func(m *Shared[uint64, uint64], k uint64) error{
		"Put": func(m *Shared[uint64, uint64], k uint64) error { return m.Put(k, k) },
		"Update": func(m *Shared[uint64, uint64], k uint64) error {
			return m.Update(k, func(v *uint64, _ bool) { *v = k })
		},
	} {
		m := NewShared[uint64, uint64](alloctest.New(t), nil)
		m.narrowBy(0xFF << 56) // all in one table
		succeed(m.create(0, class))
		next := uint64(0)
		fill := func(home uint32, n int) (keys []uint64) {
			for ; len(keys) < n; next++ {
				if k := next; uint64(uint32(hashOf(&m.hash, &k)))*groups>>groupShift == uint64(home) {
					succeed(put(m, k))
					keys = append(keys, k)
				}
			}
			return keys
		}
		gone := fill(4, 4*groupSlots) // in groups 4 to 7
		fill(4, 4*groupSlots)         // in groups 8 to 11
		fill(8, 4*groupSlots)         // in groups 12 to 15
		for _, k := range gone {
			m.Delete(k)
		}
		before := m.Stats()
		fill(8, 1)
		m.checkAll()
		if st := m.Stats(); before.Spare != 0 || st.Spare == 0 || st.Slots != groups*groupSlots {
			t.Errorf("%s: %+v, and before %+v", call, st, before)
		}
		fill(8, 4*groupSlots) // more than groups 8 to 15 can take
		if st := m.Stats(); st.Slots <= groups*groupSlots {
			t.Errorf("%s: the table does not grow: %+v", call, st)
		}
		m.Close()
	}
}

// alike returns n keys from first on whose hashes begin with 12 zeros.
func alike(m *Shared[uint64, uint64], first uint64, n int) (keys []uint64) {
	for k := first; len(keys) < n; k++ {
		if hashOf(&m.hash, &k)>>(64-12) == 0 {
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
		if class := largestClass(m); class <= m.limit(0) {
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

// TestSharedPasses: an entry passes more than maxPasses groups only in a sparse table.
func TestSharedPasses(t *testing.T) {
	m := NewShared[int, int](alloctest.New(t), nil)
	defer m.Close()
	m.narrowBy(1<<64 - 1) // all have one home
	const n = (1 + maxPasses) * groupSlots
	for k := range n + 1 {
		succeed(m.Put(k, k))
	}
	if st := m.Stats(); st.Slots <= sparseShare*n {
		t.Errorf("%+v", st)
	}
}

// TestSharedTablesAreWithinTheirLimits: while a map has few tables, a split may part hashes of
// different limits. Each table is then within its own.
func TestSharedTablesAreWithinTheirLimits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	m := NewShared[uint64, uint64](alloctest.New(t), nil)
	defer m.Close()
	for k := uint64(0); m.Stats().Tables < 16; k++ {
		succeed(m.Put(k, k))
		h := hashOf(&m.hash, &k)
		m.visit(h, func(x held) {
			if first := h >> (64 - x.head().depth) << (64 - x.head().depth); x.class() > m.limit(first) {
				t.Fatalf("the table at %#x has class %d, limit %d", first, x.class(), m.limit(first))
			}
		})
	}
}

// TestSharedHasADirectoryForEachDepth: none is replaced by one of the same depth.
func TestSharedHasADirectoryForEachDepth(t *testing.T) {
	m := NewShared[int, int](alloctest.New(t), nil)
	defer m.Close()
	for k := range 20_000 {
		succeed(m.Put(k, k))
	}
	if n, depths := len(m.dirs), int(depthOf(m.dir.Load())-firstDepth())+1; n > depths {
		t.Errorf("%d directories of %d depths", n, depths)
	}
}

// TestSharedResultsAreTheCallers: text that calls return or hand out is a copy, which outlives
// its entry and the map.
func TestSharedResultsAreTheCallers(t *testing.T) {
	m := NewShared[string, []byte](alloctest.New(t), nil)
	succeed(m.Put("the key", []byte("the value")))
	got, _ := m.Get("the key")
	got[0] = 'T'
	there, _, err := m.PutIfAbsent("the key", nil)
	succeed(err)
	key, results := "", map[string][]byte{"PutIfAbsent": there}
	succeed(m.Update("the key", func(v *[]byte, _ bool) { results["Update"] = *v }))
	for k, v := range m.All() {
		results["All"], key = v, k
	}
	take := func(v []byte) bool { results["DeleteIf"] = v; return true }
	if !m.DeleteIf("the key", take) || m.DeleteIf("the key", take) || m.DeleteIf("none", take) {
		t.Error("DeleteIf removes a key other than once")
	}
	succeed(m.Put("empty", nil))
	if v, found := m.Get("empty"); !found || v == nil || len(v) != 0 {
		t.Errorf("Get of an empty value = %v, %t", v, found)
	}
	m.Close() // which frees the text, and alloctest fills it
	for call, v := range results {
		if string(v) != "the value" {
			t.Errorf("%s has %q", call, v)
		}
	}
	if string(got) != "The value" || key != "the key" {
		t.Errorf("Get has %q, and All the key %q", got, key)
	}
}

// Each NaN has another hash when it is counted than when it moves, so either of two tables has room
// for all.
func TestSharedSplitOfNaNs(t *testing.T) {
	for range 10 {
		m := NewShared[float64, int](alloctest.New(t), nil)
		const n = 700
		for i := range n {
			succeed(m.Put(math.NaN(), i))
		}
		succeed(m.Grow(100_000))
		m.checkAll()
		if m.Len() != n {
			t.Errorf("%d entries, want %d", m.Len(), n)
		}
		m.Close()
	}
}

// The key of the last Put is in the map: -0 replaces +0, as in a Map.
func TestSharedPutReplacesZero(t *testing.T) {
	m := NewShared[float64, int](alloctest.New(t), nil)
	defer m.Close()
	succeed(m.Put(0, 1))
	succeed(m.Put(math.Copysign(0, -1), 2))
	for k, v := range m.All() {
		if !math.Signbit(k) || v != 2 {
			t.Errorf("All has %v: %d", k, v)
		}
	}
}
