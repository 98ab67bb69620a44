package hashmap

import (
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/hash"
)

// twoProcessors has a Shared begin with tables for two processors, whatever there are.
func twoProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(2)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// TestSharedGrowMakesRoom: Grow takes most of the tables' memory, and with the Puts at most a
// fifth more than the Puts alone.
func TestSharedGrowMakesRoom(t *testing.T) {
	testSharedGrowMakesRoom[uint64](t)
	testSharedGrowMakesRoom[[largeBytes - 8]byte](t)
	testSharedGrowMakesRoom[large](t)
}

func testSharedGrowMakesRoom[V any](t *testing.T) {
	var v V
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	for n := 4000; n < 40_000; n += n / 3 {
		fill := func(grow bool) (grown, filled int) {
			m := NewShared[int, V](heap, nil)
			defer m.Close()
			m.hash.seed = hash.SeedFrom(rand.New(rand.NewPCG(1, uint64(n))).Uint64)
			for k := range n {
				if k == n/10 && grow {
					succeed(m.Grow(n - k))
					grown = tableBytesOf(m)
				}
				succeed(m.Put(k, v))
			}
			return grown, tableBytesOf(m)
		}
		_, without := fill(false)
		if grown, filled := fill(true); filled > without*6/5 || grown < filled/3 {
			t.Errorf("%T: tables of %d bytes for %d entries, %d of them by Grow; without it %d", v, filled, n, grown, without)
		}
	}
}

// TestSharedGrowCountsTheEntries: after Grow few of the n Puts replace a table, also if the map had
// as many entries before. Grow of an empty map makes four tables for each processor, and replaces
// none.
func TestSharedGrowCountsTheEntries(t *testing.T) {
	const procs = 64
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	grown, filled := 0, 0
	for n := 8000; n < 25_000; n += n / 5 {
		for _, before := range []int{0, n} {
			m := NewShared[int, int](alloctest.New(t), nil)
			m.hash.seed = hash.SeedFrom(rand.New(rand.NewPCG(1, uint64(n))).Uint64)
			for k := range before {
				succeed(m.Put(k, k))
			}
			succeed(m.Grow(n))
			st := m.Stats()
			if before == 0 && (st.Tables != 4*procs || st.Directory != 4*procs || st.Spare != 0) {
				t.Errorf("Grow(%d): %+v", n, st)
			}
			for k := range n {
				succeed(m.Put(before+k, k))
			}
			grown, filled = grown+st.Slots, filled+m.Stats().Slots
			m.Close()
		}
	}
	if filled > grown*51/50 {
		t.Errorf("%d slots, %d of them by Grow", filled, grown)
	}
}

// tableBytesOf returns the bytes that m has reserved for tables, without the rests of huge pages.
func tableBytesOf[K comparable, V any](m *Shared[K, V]) int {
	st, h := m.Stats(), &m.huge
	left := h.left.size() + h.unused.size()
	if h.next != nil {
		left += h.next.size()
	}
	return st.Reserved - st.Text - int(left)
}

// TestLargeValuesTakeTheirSize: an entry takes its value and a slot.
func TestLargeValuesTakeTheirSize(t *testing.T) {
	testLargeValue[[largeBytes]byte](t)
	testLargeValue[[64]float32](t)
	testLargeValue[[1024]byte](t)

	m := NewShared[uint64, [64 << 10]byte](alloctest.New(t), nil)
	defer m.Close()
	if n := classes[m.limit(0)].groups; n != minGroups {
		t.Errorf("All would copy %d values of 64 KiB at a time", n*groupSlots)
	}
}

func testLargeValue[V any](t *testing.T) {
	m, s := New[uint64, V](alloctest.New(t), nil), NewShared[uint64, V](alloctest.New(t), nil)
	defer m.Close()
	defer s.Close()
	var v V
	const n = 5000
	for k := range uint64(n) {
		succeed(m.Put(k, v))
		succeed(s.Put(k, v))
	}
	values, st := n*int(unsafe.Sizeof(v)), s.Stats()
	if st.Text != values || st.Reserved-st.Text > 96*n || m.Stats().Reserved-values > 48*n {
		t.Errorf("%T: %+v, %+v", v, st, m.Stats())
	}
	if p := m.At(1); p == nil || m.At(n) != nil { // in its block
		t.Errorf("%T: At is %v", v, p)
	}
}

// TestSharedTablesAreBounded: a Put copies at most one table of 16 KiB, whatever the map
// holds. If hashes agree in their first bits, tables grow instead of the directory.
func TestSharedTablesAreBounded(t *testing.T) {
	twoProcessors(t)
	for _, narrow := range []uint64{0, math.MaxUint64 &^ (1<<40 - 1)} {
		m := NewShared[uint64, uint64](alloctest.New(t), nil)
		m.narrowBy(narrow)
		for k := range uint64(30_000) {
			succeed(m.Put(k, k))
		}
		largest := 0
		m.mu.Lock()
		m.each(func(t table) { largest = max(largest, int(m.sharedBytes(t.class()))) })
		m.mu.Unlock()
		st := m.Stats()
		if narrow == 0 && largest > tableBytes {
			t.Errorf("a table has %d bytes", largest)
		}
		if st.Directory > sparseEntries*2*st.Tables {
			t.Errorf("a directory of %d for %d tables", st.Directory, st.Tables)
		}
		if st.Len != 30_000 {
			t.Errorf("%d entries", st.Len)
		}
		m.checkAll()
		m.Close()
	}
}

func TestSharedAllMayChangeTheMap(t *testing.T) {
	m := NewShared[int, int](alloctest.New(t), nil)
	defer m.Close()
	for i := range 1000 {
		succeed(m.Put(i, 0))
	}
	seen := 0
	for k := range m.All() {
		if k < 1000 {
			seen++
			m.Delete(k)
			succeed(m.Put(1000+k, 1))
			succeed(m.Put(2000+k, 1))
		}
	}
	if seen != 1000 || m.Len() != 2000 {
		t.Errorf("All has %d of 1000 entries, and there are %d, want 2000", seen, m.Len())
	}
	for range m.All() {
		m.Clear()
		break
	}
}

// TestSharedAllBeginsAnywhere: loops begin at different tables. So loops that delete one entry each
// do not visit all tables that earlier ones have emptied.
func TestSharedAllBeginsAnywhere(t *testing.T) {
	m := NewShared[int, int](alloctest.New(t), nil)
	defer m.Close()
	for i := range 10_000 {
		succeed(m.Put(i, 0))
	}
	first := map[int]bool{}
	for range 100 {
		for k := range m.All() {
			first[k] = true
			break
		}
	}
	if len(first) == 1 {
		t.Error("100 loops begin with one key")
	}
}

func TestSharedAllocatesNothingOnTheGoHeap(t *testing.T) {
	testSharedAllocations[wide](t)
	testSharedAllocations[large](t) // less than one for each, to note what waits for readers
}

func testSharedAllocations[V any](t *testing.T) {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	m := NewShared[uint64, V](heap, nil)
	defer m.Close()
	k := uint64(0)
	if n := testing.AllocsPerRun(10_000, func() {
		var v V
		succeed(m.Put(k, v))
		m.Get(k)
		m.Get(k + 1)
		m.Delete(k - 100)
		k++
	}); n != 0 {
		t.Errorf("%v allocations for each entry", n)
	}
}

// textKey returns the text of a number, of 0 to 700 bytes.
func textKey(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n) + strings.Repeat("x", max(0, n%1024-323))
}

// TestSharedIsSmall: tables that were replaced on the way take less than the last ones, and many
// processors do not get a table each for a few entries.
func TestSharedIsSmall(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{2, 8, 64} {
		runtime.GOMAXPROCS(procs)
		m := NewShared[uint64, uint64](alloctest.New(t), nil)
		for n := range uint64(100_000) {
			succeed(m.Put(n, n))
			switch n + 1 {
			case 1000, 3000, 10_000, 30_000, 100_000:
				if st := m.Stats(); st.Reserved > 80*st.Len {
					t.Errorf("%d processors: %+v", procs, st)
				}
			}
		}
		if tables := m.Stats().Tables; tables < 4*procs {
			t.Errorf("%d processors have %d tables", procs, tables)
		}
		m.Close()
		if st := m.Stats(); st != (SharedStats{}) {
			t.Errorf("after Close: %+v", st)
		}
	}
}
