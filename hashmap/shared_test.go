package hashmap

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/hash"
)

func TestSharedPanics(t *testing.T) {
	heap := alloctest.New(t)
	open := NewShared[int, int](heap, nil)
	defer open.Close()
	wantPanic(t, "freehold: hashmap.Shared.Grow: n -1, want 0 or more", func() { open.Grow(-1) })
	type pointerful struct {
		n int
		s struct{ name string }
	}
	wantPanic(t, "freehold: hashmap.NewShared[K=pointerful]: field s.name is a string, which points into the Go heap; use freehold.String",
		func() { NewShared[pointerful, int](heap, nil) })
	wantPanic(t, "freehold: hashmap.NewShared[V=*int]: it is a *int, which points into the Go heap; use freehold.Ptr[int]",
		func() { NewShared[int, *int](heap, nil) })
	wantPanic(t, "freehold: hashmap.NewShared: a K or V of 16777217 bytes, want 16777216 or less",
		func() { NewShared[int, [maxBytes + 1]byte](heap, nil) })
}

// TestSharedRunsOutOfMemory: each allocation fails once, first and alone. The map has the
// entries that it had.
func TestSharedRunsOutOfMemory(t *testing.T) {
	testSharedFailure(t, func(n int) uint64 { return uint64(n) }, func(n int) wide { return wideOf(uint64(n)) })
	testSharedFailure(t, textKey, textKey)
	testSharedFailure(t, func(n int) uint64 { return uint64(n) }, func(n int) large { return largeOf(uint64(n)) })
	testSharedFailure(t, textKey, func(n int) large { return largeOf(uint64(n)) })
}

func testSharedFailure[K, V comparable](t *testing.T, key func(int) K, value func(int) V) {
	keys := 6000
	if testing.Short() {
		keys = 1000
	}
	kinds := map[string]func(freehold.Allocator, int) freehold.Allocator{"after": alloctest.FailAfter, "once": alloctest.FailOnce}
	for kind, fail := range kinds {
		step := 1
		for n := 0; ; n += step {
			if n > 100 { // texts take an allocation each
				step = 97
			}
			heap := fail(alloctest.New(t), n)
			m := NewShared[K, V](heap, nil)
			want := map[K]V{}
			failures := 0
			for i := 0; i < keys && failures < 3; i++ {
				err := m.Put(key(i), value(i))
				if k := key(i / 2); i%5 == 4 { // replaced, or nothing has changed
					if err := m.Update(k, func(v *V, _ bool) { *v = value(i) }); err == nil {
						want[k] = value(i)
					} else if failures++; !errors.Is(err, freehold.ErrOutOfMemory) {
						t.Fatalf("Update failed with %v", err)
					}
				}
				if i%7 == 6 {
					if k := key(i - 3); m.Delete(k) {
						delete(want, k)
					}
				}
				if err == nil {
					want[key(i)] = value(i)
					continue
				}
				failures++
				if !errors.Is(err, freehold.ErrOutOfMemory) {
					t.Fatalf("Put failed with %v", err)
				}
				m.checkAll()
				if got := maps.Collect(m.All()); !maps.Equal(got, want) {
					t.Fatalf("%s %d: %d entries after a failure, want %d", kind, n, len(got), len(want))
				}
				if kind == "once" {
					if err := m.Put(key(i), value(i)); err != nil {
						t.Fatalf("Put again failed with %v", err)
					}
					want[key(i)] = value(i)
				}
			}
			for k, v := range want {
				if got, found := m.Get(k); !found || got != v {
					t.Fatalf("%s %d: Get(%v) = %v, %t", kind, n, k, got, found)
				}
			}
			m.Close()
			if failures == 0 {
				break
			}
			if testing.Short() && n > 20 {
				step = 997
			}
		}
	}
}

func TestSharedGrowRunsOutOfMemory(t *testing.T) {
	testSharedGrowRunsOutOfMemory(t, func(n int) int { return -n })
	testSharedGrowRunsOutOfMemory(t, func(n int) large { return largeOf(uint64(n)) })
	m := NewShared[int, int](alloctest.New(t), nil)
	defer m.Close()
	if err := m.Grow(math.MaxInt - 1); !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Errorf("Grow to any size: %v", err)
	}
}

func testSharedGrowRunsOutOfMemory[V comparable](t *testing.T, value func(int) V) {
	for n := 0; ; n++ {
		m := NewShared[int, V](alloctest.FailAfter(alloctest.New(t), n), nil)
		for i := range 200 {
			if m.Put(i, value(i)) != nil {
				break
			}
		}
		before := maps.Collect(m.All())
		err := m.Grow(20_000)
		if err != nil && !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Fatal(err)
		}
		m.checkAll()
		if got := maps.Collect(m.All()); !maps.Equal(got, before) {
			t.Fatalf("%d entries after Grow, want %d", len(got), len(before))
		}
		m.Close()
		if err == nil {
			break
		}
	}
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
			m.hasher.seed = hash.SeedFrom(rand.New(rand.NewPCG(1, uint64(n))).Uint64)
			for k := range n {
				if k == n/10 && grow {
					succeed(m.Grow(n - k))
					st := m.Stats()
					grown = st.Reserved - st.Text
				}
				succeed(m.Put(k, v))
			}
			st := m.Stats()
			return grown, st.Reserved - st.Text
		}
		_, without := fill(false)
		if grown, filled := fill(true); filled > without*6/5 || grown < filled/3 {
			t.Errorf("%T: tables of %d bytes for %d entries, %d of them by Grow; without it %d", v, filled, n, grown, without)
		}
	}
}

// TestLargeValuesTakeTheirSize: besides the value, an entry takes what its slot does.
func TestLargeValuesTakeTheirSize(t *testing.T) {
	testLargeValue[[largeBytes]byte](t)
	testLargeValue[[64]float32](t)
	testLargeValue[[1024]byte](t)

	m := NewShared[uint64, [64 << 10]byte](alloctest.New(t), nil)
	defer m.Close()
	if m.maxClass != minMaxClass {
		t.Errorf("All would copy %d values of 64 KiB at a time", roomOf(m.maxClass))
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
	for _, narrow := range []uint64{0, math.MaxUint64 &^ (1<<40 - 1)} {
		m := NewShared[uint64, uint64](alloctest.New(t), nil)
		m.hasher.narrow = narrow
		for k := range uint64(30_000) {
			succeed(m.Put(k, k))
		}
		largest := 0
		m.mu.Lock()
		m.each(func(e uintptr) { largest = max(largest, int(m.layout.stride<<classOf(e))) })
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

// TestSharedChurn: deletion leaves nothing behind. Neither the memory grows nor the
// searches.
func TestSharedChurn(t *testing.T) {
	m := NewShared[uint64, uint64](alloctest.New(t), nil)
	defer m.Close()
	const live = 5000
	probes := func() (n int) {
		for pos, more := uint64(0), true; more; {
			pos, more = m.visit(pos, func(x held) {
				for i := range groupsOf(x.e) {
					for w := *tagsAt(m.group(tableOf(x.e), i)) >> overflowShift; w != 0; w &= w - 1 {
						n++
					}
				}
			})
		}
		return n
	}
	var bytes, bits int
	for k := range uint64(live * 100) {
		succeed(m.Put(k, k))
		if k >= live {
			m.Delete(k - live)
		}
		if k == live*10 {
			bytes, bits = m.Stats().Reserved, probes()
		}
	}
	st := m.Stats()
	if st.Len != live {
		t.Errorf("%d entries", st.Len)
	}
	if st.Reserved > bytes*3/2 {
		t.Errorf("%d bytes after 100 times the live entries, %d after 10", st.Reserved, bytes)
	}
	if n := probes(); n > 4*bits+100 {
		t.Errorf("%d overflow bits after 100 times the live entries, %d after 10", n, bits)
	}
}

func TestSharedNaN(t *testing.T) {
	m := NewShared[float64, int](alloctest.New(t), nil)
	defer m.Close()
	for i := range 2000 {
		succeed(m.Put(math.NaN(), i))
	}
	if _, found := m.Get(math.NaN()); found || m.Delete(math.NaN()) || m.Len() != 2000 {
		t.Errorf("a NaN is found, or there are %d entries, want 2000", m.Len())
	}
	seen := map[int]bool{}
	for _, v := range m.All() {
		seen[v] = true
	}
	if len(seen) != 2000 {
		t.Errorf("All has %d of 2000 NaNs", len(seen))
	}
	m.checkAll()
	succeed(m.Put(math.Copysign(0, -1), 7))
	if v, found := m.Get(0); !found || v != 7 {
		t.Errorf("Get(0) = %d, %t after Put of -0", v, found)
	}
	m.Clear()
	if m.Len() != 0 {
		t.Errorf("Clear left %d entries", m.Len())
	}
}

// TestSharedOwnsItsText: neither the bytes of a key or a value that was put, nor those
// that Get returned, are the map's.
func TestSharedOwnsItsText(t *testing.T) {
	m := NewShared[string, []byte](alloctest.New(t), nil)
	defer m.Close()
	k, v := []byte("key"), []byte("value")
	succeed(m.Put(unsafe.String(&k[0], len(k)), v))
	k[0], v[0] = 'K', 'V'
	got, found := m.Get("key")
	if !found || string(got) != "value" {
		t.Fatalf("Get = %q, %t", got, found)
	}
	got[0] = 'X'
	if got, _ := m.Get("key"); string(got) != "value" {
		t.Errorf("Get = %q after a write to what it returned", got)
	}
	for key, value := range m.All() {
		m.Delete(key)
		succeed(m.Put("later", nil))
		if key != "key" || string(value) != "value" {
			t.Errorf("All has %q with %q", key, value)
		}
		break
	}
	if v, found := m.Get("later"); !found || v == nil || len(v) != 0 {
		t.Errorf("Get of an empty value = %v, %t", v, found)
	}
}

// What the function of DeleteIf sees is the value that is removed, and a copy of it.
func TestSharedDeleteIfHandsOutTheValue(t *testing.T) {
	m := NewShared[string, []byte](alloctest.New(t), nil)
	defer m.Close()
	succeed(m.Put("key", []byte("value")))
	var taken []byte
	take := func(v []byte) bool { taken = v; return true }
	if !m.DeleteIf("key", take) || m.DeleteIf("key", take) || m.DeleteIf("none", take) {
		t.Error("DeleteIf removes a key other than once")
	}
	for i := range 100 { // readers have left: the memory is used again
		succeed(m.Put(fmt.Sprint(i), []byte("other")))
	}
	if string(taken) != "value" {
		t.Errorf("the value was %q", taken)
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

func TestSharedStats(t *testing.T) {
	testSharedStats(t, func(n int) string { return textKey(n / 2) })
	testSharedStats(t, func(n int) large { return largeOf(uint64(n)) })
}

func testSharedStats[V any](t *testing.T, value func(n int) V) {
	heap := freehold.NewTagged(alloctest.New(t), "")
	m := NewShared[string, V](heap, &Options{Name: "names"})
	for i := range 3000 {
		succeed(m.Put(textKey(i), value(i)))
		m.Delete(textKey(i - 100))
		if i%100 == 0 {
			if st := m.Stats(); st.Reserved != heap.Counts().LiveBytes || st.Len != min(i+1, 100) {
				t.Fatalf("%+v; the parent has %d bytes", st, heap.Counts().LiveBytes)
			}
		}
	}
	st := m.Stats()
	if st.Name != "names" || st.Tables == 0 || st.Directory < st.Tables || st.Slots < st.Len || st.Spare+st.Text >= st.Reserved {
		t.Errorf("%+v", st)
	}
	m.Close()
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
