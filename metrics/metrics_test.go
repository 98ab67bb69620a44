package metrics_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/metrics"
	"github.com/freehold-go/freehold/track"
)

// named returns the figures of one name.
func named(t *testing.T, name string) freehold.Stats {
	t.Helper()
	var found []freehold.Stats
	for _, st := range metrics.ByName() {
		if st.Name == name {
			found = append(found, st)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d heaps of name %q", len(found), name)
	}
	return found[0]
}

func newHeap(t *testing.T, name string, maxBytes int, sizes ...int) *freehold.Heap {
	h := freehold.NewHeap(&freehold.HeapOptions{Name: name, MaxBytes: maxBytes})
	t.Cleanup(h.Close)
	for _, size := range sizes {
		freehold.Must(h.Alloc(size, 8))
	}
	return h
}

// Each figure of heaps with one name is the sum of theirs.
func TestHeapsOfOneNameAreAddedUp(t *testing.T) {
	parts := []*freehold.Heap{
		newHeap(t, t.Name(), 8<<20, 64, 4096, 100_000),
		newHeap(t, t.Name(), 4<<20, 16, 64, 100_000),
		newHeap(t, t.Name(), 2<<20, 2048, 64),
	}
	newHeap(t, t.Name()+" other", 0, 64)
	if _, err := parts[2].Alloc(3<<20, 8); err == nil {
		t.Fatal("a block beyond the limit")
	}
	got := named(t, t.Name())
	sum := reflect.ValueOf(got)
	for i := range sum.NumField() {
		if !sum.Field(i).CanInt() && !sum.Field(i).CanUint() {
			continue
		}
		want := 0
		for _, h := range parts {
			f := reflect.ValueOf(h.Stats()).Field(i)
			if f.CanInt() {
				want += int(f.Int())
			} else {
				want += int(f.Uint())
			}
		}
		have := 0
		if f := sum.Field(i); f.CanInt() {
			have = int(f.Int())
		} else {
			have = int(f.Uint())
		}
		if have != want {
			t.Errorf("%s: %d, want %d", sum.Type().Field(i).Name, have, want)
		}
	}
	if got.Live != 8 || got.Large != 2 || got.MaxBytes != 14<<20 || got.Refusals == 0 {
		t.Errorf("%+v", got)
	}
	classes := map[int]freehold.ClassStats{}
	var sizes []int
	for _, h := range parts {
		for _, c := range h.Stats().Classes {
			sum := classes[c.BlockSize]
			classes[c.BlockSize] = freehold.ClassStats{BlockSize: c.BlockSize, Live: sum.Live + c.Live, Cached: sum.Cached + c.Cached, Free: sum.Free + c.Free, Spans: sum.Spans + c.Spans}
		}
	}
	for _, c := range got.Classes {
		if c != classes[c.BlockSize] {
			t.Errorf("class %+v, want %+v", c, classes[c.BlockSize])
		}
		sizes = append(sizes, c.BlockSize)
	}
	if len(sizes) != len(classes) || len(sizes) != 4 || !slices.IsSorted(sizes) {
		t.Errorf("classes %v, want %d in order", sizes, len(classes))
	}
}

func TestOneHeapWithoutALimitLeavesNone(t *testing.T) {
	newHeap(t, t.Name()+"1", 1<<20)
	newHeap(t, t.Name()+"1", 0)
	newHeap(t, t.Name()+"1", 1<<20)
	newHeap(t, t.Name()+"2", 0)
	newHeap(t, t.Name()+"2", 1<<20)
	for _, name := range []string{t.Name() + "1", t.Name() + "2"} {
		if got := named(t, name).MaxBytes; got != 0 {
			t.Errorf("%s: limit %d, want none", name, got)
		}
	}
}

// Heaps come in the order of the first of each name.
func TestOrder(t *testing.T) {
	newHeap(t, t.Name()+"b", 0)
	newHeap(t, t.Name()+"a", 0)
	newHeap(t, t.Name()+"b", 0)
	var names []string
	for _, st := range metrics.ByName() {
		if st.Name == t.Name()+"a" || st.Name == t.Name()+"b" {
			names = append(names, st.Name)
		}
	}
	if !slices.Equal(names, []string{t.Name() + "b", t.Name() + "a"}) {
		t.Errorf("%q", names)
	}
}

func TestNamesThatAreNotUTF8AreQuoted(t *testing.T) {
	newHeap(t, t.Name()+"\xff", 0, 64)
	newHeap(t, t.Name()+"\xfe", 0)
	if st := named(t, `"`+t.Name()+`\xff"`); st.Live != 1 {
		t.Errorf("%+v", st)
	}
}

func TestGuardsAreAddedUp(t *testing.T) {
	was := track.SetGuardRate(1, 0)
	parts := []*freehold.Heap{newHeap(t, t.Name(), 0, 64, 64), newHeap(t, t.Name(), 0, 64)}
	track.SetGuardRate(was, 0)
	var want freehold.Stats
	for _, h := range parts {
		st := h.Stats()
		want.Guarded += st.Guarded
		want.GuardedEver += st.GuardedEver
		want.GuardsSkipped += st.GuardsSkipped
	}
	if got := named(t, t.Name()); got.Guarded != want.Guarded || got.GuardedEver != want.GuardedEver || got.GuardsSkipped != want.GuardsSkipped {
		t.Errorf("%+v, want %+v", got, want)
	}
}
