package hashmap

import (
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
)

// gets returns the calls that read a value, each as a Get.
func gets[K comparable, V any](m *Shared[K, V]) map[string]func(k K) (V, bool) {
	all := map[string]func(k K) (V, bool){"Get": m.Get, "View": func(k K) (v V, ok bool) {
		ok = m.View(k, func(at V) {
			if v = at; m.values != noText {
				v = copyOf[V](m.values, textOf(m.values, &at))
			}
		})
		return v, ok
	}}
	if m.values == isString || m.values == isBytes {
		all["AppendTo"] = func(k K) (v V, ok bool) {
			b, ok := m.AppendTo([]byte("dst"), k)
			text, whole := strings.CutPrefix(string(b), "dst")
			if !whole || !ok && text != "" {
				panic("AppendTo returns " + string(b))
			}
			return viewOf[V](m.values, text), ok
		}
	}
	return all
}

// TestSharedViewStays: whatever becomes of a value in fn of View, the bytes are the same. Those
// of freed blocks are not: alloctest fills them.
func TestSharedViewStays(t *testing.T) {
	t.Run("string", func(t *testing.T) { testSharedViewStays[string](t) })
	t.Run("bytes", func(t *testing.T) { testSharedViewStays[[]byte](t) })
}

func testSharedViewStays[V string | []byte](t *testing.T) {
	old := strings.Repeat("old", 100)
	for name, change := range map[string]func(m *Shared[string, V]){
		"Put":    func(m *Shared[string, V]) { succeed(m.Put("key", V("new"))) },
		"Update": func(m *Shared[string, V]) { succeed(m.Update("key", func(v *V, _ bool) { *v = V("new") })) },
		"Delete": func(m *Shared[string, V]) { m.Delete("key") },
		"Clear":  func(m *Shared[string, V]) { m.Clear() },
		"Grow":   func(m *Shared[string, V]) { succeed(m.Grow(10_000)) },
	} {
		m := NewShared[string, V](alloctest.New(t), nil)
		succeed(m.Put("key", V(old)))
		churn := func() {
			done := make(chan bool)
			go func() {
				for range 3 * batchTexts {
					succeed(m.Put("other", V(old)))
				}
				m.retired.reclaim(&m.sharedTables)
				close(done)
			}()
			<-done
		}
		if !m.View("key", func(v V) {
			change(m)
			churn()
			if string(v) != old {
				t.Errorf("%s: fn has %.20q", name, v)
			}
			if n := m.retired.bytes.Load(); n < int64((3*batchTexts-1)*len(old)) {
				t.Errorf("%s: only %d bytes wait for fn", name, n)
			}
		}) {
			t.Errorf("%s: View finds nothing", name)
		}
		churn()
		if n := m.retired.bytes.Load(); n != 0 {
			t.Errorf("%s: %d bytes wait for nobody", name, n)
		}
		m.Close()
	}
}

// TestSharedViewEnds: a fn that panics leaves no guard, and Close in fn changes nothing.
func TestSharedViewEnds(t *testing.T) {
	m := NewShared[int, string](alloctest.New(t), nil)
	defer m.Close()
	succeed(m.Put(1, "value"))
	panics.Want(t, "fn", func() { m.View(1, func(string) { panic("fn") }) })
	panics.Want(t, "freehold: hashmap.Shared.Close: a call is under way, such as View", func() {
		m.View(1, func(string) { m.Close() })
	})
	if v, ok := m.Get(1); v != "value" || !ok {
		t.Errorf("Get = %q, %t", v, ok)
	}
	if m.View(2, func(string) { t.Error("fn has no value") }) {
		t.Error("View finds 2")
	}
	m.Delete(1)
	if m.retired.reclaim(&m.sharedTables); m.retired.bytes.Load() != 0 {
		t.Error("a guard is left")
	}
}

// TestSharedReadsInPlaceWithoutAllocating is what View and AppendTo are for.
func TestSharedReadsInPlaceWithoutAllocating(t *testing.T) {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	m := NewShared[string, []byte](heap, nil)
	defer m.Close()
	succeed(m.Put("key", make([]byte, 1000)))
	n, room := 0, make([]byte, 0, 1000)
	if allocs := testing.AllocsPerRun(100, func() {
		m.View("key", func(v []byte) { n += len(v) })
		b, _ := m.AppendTo(room, "key")
		n += len(b)
	}); allocs != 0 || n == 0 {
		t.Errorf("%v allocations to read %d bytes", allocs, n)
	}
}
