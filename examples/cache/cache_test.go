package main

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// model is all keys in order of last use, the newest last.
type model []uint64

func (m *model) use(key uint64) {
	m.forget(key)
	*m = append(*m, key)
}

func (m *model) forget(key uint64) {
	*m = slices.DeleteFunc(*m, func(k uint64) bool { return k == key })
}

// check verifies that the cache holds exactly the most recently used keys, in order.
func (m model) check(t *testing.T, c *Cache) {
	t.Helper()
	want := m[len(m)-c.Len():]
	at := c.entries[ring].newer
	for _, key := range want {
		e := c.entries[at]
		if e.key != key || c.index[key] != at || !bytes.Equal(e.value.Get(), valueOf(key)) {
			t.Fatalf("%d values: key %d where %d should be, or its value is wrong", c.Len(), e.key, key)
		}
		at = e.newer
	}
	if at != ring {
		t.Fatalf("more than %d values", c.Len())
	}
}

func valueOf(key uint64) []byte { return fill(make([]byte, 1000), key) }

func TestKeepsWhatWasUsedLast(t *testing.T) {
	limit := freehold.NewLimit(alloctest.New(t), 50_000) // room for about 100 values
	c := NewCache(limit, 1000)
	defer c.Close()
	var m model
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		key := rnd.Uint64N(200)
		before := slices.Clone(m[len(m)-c.Len():])
		got, ok := c.Get(key, []byte("before "))
		if ok != slices.Contains(before, key) {
			t.Fatalf("Get of key %d says %v", key, ok)
		}
		if ok {
			if !bytes.Equal(got, append([]byte("before "), valueOf(key)...)) {
				t.Fatalf("the value of key %d is wrong", key)
			}
		}
		if !ok || rnd.IntN(4) == 0 { // also a put of what is there
			if err := c.Put(key, valueOf(key)); err != nil {
				t.Fatal(err)
			}
		}
		m.use(key)
		m.check(t, c)
	}
	if c.Len() < 50 || c.Evicted() == 0 {
		t.Errorf("%d values, %d evicted", c.Len(), c.Evicted())
	}
}

func TestTooLargeEvictsNothing(t *testing.T) {
	c := NewCache(alloctest.New(t), 1000)
	defer c.Close()
	for key := range uint64(10) {
		if err := c.Put(key, valueOf(key)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Put(3, make([]byte, 1001)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v", err)
	}
	if _, ok := c.Get(3, nil); ok || c.Len() != 9 || c.Evicted() != 0 {
		t.Errorf("the old value is there: %v; %d values, %d evicted", ok, c.Len(), c.Evicted())
	}
}

// A value that does not fit evicts at most maxEvictions others.
func TestEvictionsAreBounded(t *testing.T) {
	const small = 16
	limit := freehold.NewLimit(alloctest.New(t), 3*maxEvictions*small)
	c := NewCache(limit, limit.MaxBytes())
	defer c.Close()
	for key := range uint64(3 * maxEvictions) {
		if err := c.Put(key, make([]byte, small)); err != nil {
			t.Fatal(err)
		}
	}
	large := make([]byte, 2*maxEvictions*small)
	for try, want := range []struct {
		fits bool
		left int
	}{{false, 2 * maxEvictions}, {true, maxEvictions + 1}} {
		err := c.Put(1<<40, large)
		if (err == nil) != want.fits || c.Len() != want.left || err != nil && !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Errorf("try %d: error %v, %d values left, want %d", try, err, c.Len(), want.left)
		}
	}
}

// Whichever allocation fails, the cache keeps working: it evicts to make room, or
// Put returns an error if there is nothing to evict.
func TestOutOfMemory(t *testing.T) {
	for n := range 20 {
		c := NewCache(alloctest.FailOnce(alloctest.New(t), n), 1000)
		var m model
		for key := range uint64(15) {
			err := c.Put(key, valueOf(key))
			if n == 0 && key == 0 {
				if !errors.Is(err, freehold.ErrOutOfMemory) {
					t.Errorf("the first value: error %v", err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			m.use(key)
			m.check(t, c)
		}
		if want := n > 0 && n < 15; (c.Evicted() == 1) != want {
			t.Errorf("allocation %d failed: %d evicted", n, c.Evicted())
		}
		c.Close()
		if c.Len() != 0 {
			t.Errorf("%d values after Close", c.Len())
		}
	}
}

// On a heap at its limit, with values of all sizes, Puts eventually succeed.
func TestHeapAtItsLimit(t *testing.T) {
	heap := freehold.NewHeap(&freehold.HeapOptions{MaxBytes: 4 << 20})
	defer heap.Close()
	c := NewCache(heap, 64<<10)
	var wg sync.WaitGroup
	for g := range uint64(4) {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, g))
			var found []byte
			for range 3000 {
				key := rnd.Uint64N(2000)
				want := fill(make([]byte, 16<<(key%12)), key)
				var ok bool
				if found, ok = c.Get(key, found[:0]); ok && !bytes.Equal(found, want) {
					t.Errorf("the value of key %d is wrong", key)
				}
				for try := 0; !ok; try++ {
					err := c.Put(key, want)
					if ok = err == nil; !ok && (try == 100 || !errors.Is(err, freehold.ErrOutOfMemory)) {
						t.Errorf("%d bytes, try %d: %v", len(want), try, err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	if st := heap.Stats(); st.Committed > 4<<20 || st.Live != c.Len() {
		t.Errorf("%d bytes, %d blocks, %d values", st.Committed, st.Live, c.Len())
	}
	c.Close()
	if st := heap.Stats(); st.Live != 0 {
		t.Errorf("%d blocks after Close", st.Live)
	}
}

func TestGoCache(t *testing.T) {
	c := newGoCache(50_000)
	for key := range uint64(1000) {
		if err := c.Put(key, valueOf(key)); err != nil {
			t.Fatal(err)
		}
	}
	got, ok := c.Get(999, nil)
	if _, first := c.Get(0, nil); !ok || first || !bytes.Equal(got, valueOf(999)) || c.bytes > 50_000 {
		t.Errorf("the last value is there: %v, the first: %v; %d bytes", ok, first, c.bytes)
	}
	if err := c.Put(1, make([]byte, 50_001)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v", err)
	}
}

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(&out, options{mib: 4, value: 1000, rounds: 10_000}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "all hits were right") || !strings.Contains(out.String(), "now 0 blocks of 0 bytes") {
		t.Errorf("printed\n%s", out.String())
	}
}

// Look-ups in a full cache. Half of them miss and put a value.
func BenchmarkCache(b *testing.B) {
	const limit = 16 << 20
	heap := freehold.NewHeap(&freehold.HeapOptions{MaxBytes: limit})
	defer heap.Close()
	for _, row := range []struct {
		memory string
		cache  interface {
			Get(key uint64, dst []byte) ([]byte, bool)
			Put(key uint64, value []byte) error
		}
	}{{"go", newGoCache(limit)}, {"off-heap", NewCache(heap, limit/8)}} {
		b.Run("memory="+row.memory, func(b *testing.B) {
			rnd := rand.New(rand.NewPCG(1, 2))
			value := make([]byte, 1024)
			var found []byte
			use := func() {
				key := rnd.Uint64N(2 * limit / 512)
				var ok bool
				if found, ok = row.cache.Get(key, found[:0]); ok {
					return
				}
				if err := row.cache.Put(key, fill(value, key)); err != nil {
					b.Fatal(err)
				}
			}
			for range 4 * limit / 512 {
				use()
			}
			for b.Loop() {
				use()
			}
		})
	}
}
