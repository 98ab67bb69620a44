package hashmap

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// TestSharedUpdateUsesAnotherMap: fn of Update may use other maps, whichever of their
// tables it locks.
func TestSharedUpdateUsesAnotherMap(t *testing.T) {
	const keys = 20_000 // in far more tables than there are locks
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	a, b := NewShared[int, int](heap, nil), NewShared[int, [32]int](heap, nil)
	defer a.Close()
	defer b.Close()
	for k := range keys {
		succeed(b.Put(k, [32]int{1}))
	}
	succeed(a.Update(0, func(v *int, _ bool) {
		for k := range keys {
			one, _ := b.Get(k)
			*v += one[0]
		}
	}))
	if v, _ := a.Get(0); v != keys {
		t.Errorf("got %d, want %d", v, keys)
	}
}

// TestSharedReplacedTextIsFreed: large values that were replaced do not pile up.
func TestSharedReplacedTextIsFreed(t *testing.T) {
	c := freehold.NewTagged(alloctest.New(t), "")
	m := NewShared[int, []byte](freehold.NewLocked(c), nil)
	defer m.Close()
	value := make([]byte, 1<<20)
	for range 50 {
		succeed(m.Put(1, value))
	}
	if st := m.Stats(); st.Text > 3*len(value) {
		t.Errorf("one value of %d bytes: %+v", len(value), st)
	}
	for range 3 {
		succeed(m.Put(1, value[:1]))
	}
	if n := len(m.retired.open); n != 2 { // small ones wait for a batch
		t.Errorf("%d small values wait, want 2", n)
	}
}

// TestSharedFreesSmallTexts: small values that were replaced and deleted are freed as well, in
// batches of batchTexts.
func TestSharedFreesSmallTexts(t *testing.T) {
	c := freehold.NewTagged(alloctest.New(t), "")
	m := NewShared[int, string](freehold.NewLocked(c), nil)
	defer m.Close()
	succeed(m.Put(1, "value"))
	before := c.Counts().Live
	for range 10 * batchTexts {
		succeed(m.Put(1, "value"))
		succeed(m.Put(2, "value"))
		m.Delete(2)
	}
	if live := c.Counts().Live; live > before+batchTexts+1 {
		t.Errorf("%d blocks are live, and were %d before they were replaced", live, before)
	}
}

// TestSharedTextWithoutMemory: whichever block is refused, a call leaves the map as it was, and no
// block behind.
func TestSharedTextWithoutMemory(t *testing.T) {
	for n, refused := 0, true; refused; n++ {
		refused = false
		m := NewShared[string, string](alloctest.FailAfter(alloctest.New(t), n), nil)
		model := map[string]string{}
		for _, put := range []struct{ k, v string }{{"key", "value"}, {"other", ""}, {"", "another value"}, {"key", "a longer value"}} {
			if err := m.Put(put.k, put.v); err == nil {
				model[put.k] = put.v
			} else if refused = true; !errors.Is(err, freehold.ErrOutOfMemory) {
				t.Errorf("block %d: %v", n, err)
			}
			text := 0
			for k, v := range model {
				if got, ok := m.Get(k); !ok || got != v {
					t.Errorf("block %d: %q is %q, %t, want %q", n, k, got, ok, v)
				}
				text += int(blockBytes(0, len(k)) + blockBytes(0, len(v)))
			}
			m.retired.reclaim(&m.sharedTables) // that nobody reads
			if st := m.Stats(); st.Len != len(model) || st.Text != text {
				t.Errorf("block %d: %d entries with %d bytes of text, want %d with %d", n, st.Len, st.Text, len(model), text)
			}
		}
		m.Close()
	}
}

// TestSharedReclaimsText: a call that runs out of memory frees the texts that no reader
// can see, however few, and tries again.
func TestSharedReclaimsText(t *testing.T) {
	twoProcessors(t)
	m := NewShared[int, string](freehold.NewLimit(alloctest.New(t), 32<<10), nil)
	defer m.Close()
	value := strings.Repeat("v", 1000)
	n := 0
	for m.Put(n, value) == nil {
		n++
	}
	if n >= batchTexts {
		t.Fatalf("%d texts would be freed anyhow", n)
	}
	reader := m.retired.readers.Enter()
	m.Delete(0)
	if err := m.Put(0, value); !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Errorf("a reader may see the text: error %v", err)
	}
	reader.Leave()
	if err := m.Put(0, value); err != nil {
		t.Errorf("for a text: %v", err)
	}
	for k := range n {
		m.Delete(k)
	}
	for k := range 200 {
		if err := m.Put(k, ""); err != nil {
			t.Fatalf("for the tables of %d entries: %v", k, err)
		}
	}
}

// TestLoopsBesideLoops: several goroutines may iterate at once. Run it with -race.
func TestLoopsBesideLoops(t *testing.T) {
	m := New[int, int](alloctest.New(t), nil)
	defer m.Close()
	for k := range 100 {
		succeed(m.Put(k, k))
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				n := 0
				for range m.All() {
					n++
				}
				if n != 100 {
					t.Errorf("%d entries", n)
				}
			}
		})
	}
	all.Wait()
	if m.cursors != nil {
		t.Error("a cursor is left")
	}
}
