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
	reader := m.limbo.readers.Enter()
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
