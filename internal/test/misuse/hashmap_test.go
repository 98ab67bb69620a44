package misuse

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/hashmap"
)

// late is the detection of a write to a heap's block after its Free.
var late = caught{guard: guarded("use after free"), poison: panics("was written after its Free"), asan: sanitized}.andInTests(reports("a write after Free"))

// inMap runs a program with a map of numbers, which it closes afterwards.
func inMap(f func(w *world, m *hashmap.Map[int, int])) func(w *world) {
	return func(w *world) {
		m := hashmap.New[int, int](w.a, nil)
		f(w, m)
		m.Close()
	}
}

// inTexts runs a program with a map that holds text 1, which it closes afterwards.
func inTexts(f func(w *world, m *hashmap.Map[int, string])) func(w *world) {
	return func(w *world) {
		m := hashmap.New[int, string](w.a, nil)
		freehold.Must(0, m.Put(1, "text"))
		f(w, m)
		m.Close()
	}
}

// inShards runs a program with a map for several goroutines, which it closes afterwards.
func inShards(f func(w *world, m *hashmap.Shared[int, int])) func(w *world) {
	return func(w *world) {
		m := hashmap.NewShared[int, int](w.a, nil)
		f(w, m)
		m.Close()
	}
}

// inFrozen runs a program with a frozen map that has text 1, which it closes afterwards.
func inFrozen(f func(w *world, m *hashmap.Frozen[int, []byte])) func(w *world) {
	return func(w *world) {
		dir := freehold.Must(os.MkdirTemp("", "freehold"))
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "frozen")
		freehold.Must(0, hashmap.Freeze(maps.All(map[int][]byte{1: []byte("text")}), path))
		m := freehold.Must(hashmap.OpenFrozen[int, []byte](path))
		defer m.Close()
		f(w, m)
	}
}

// puts makes a map grow several times.
func puts(m interface{ Put(k, v int) error }) {
	for i := range 1000 {
		freehold.Must(0, m.Put(i, i))
	}
}

var hashmapPrograms = []program{
	{"Put after Close of a Map", always(panics("the map is closed")),
		inMap(func(w *world, m *hashmap.Map[int, int]) { puts(m); m.Close(); m.Put(1, 1) }),
		inMap(func(w *world, m *hashmap.Map[int, int]) { puts(m); m.Close() })},
	{"Get after Close of a Map", always(panics("the map is closed")),
		inMap(func(w *world, m *hashmap.Map[int, int]) { puts(m); m.Close(); m.Get(1) }),
		inMap(func(w *world, m *hashmap.Map[int, int]) { puts(m); m.Get(1); m.Close() })},
	{"Close of a Map after Close of its heap", always(panics("is closed")),
		inMap(func(w *world, m *hashmap.Map[int, int]) { puts(m); w.heap.Close() }),
		inMap(func(w *world, m *hashmap.Map[int, int]) { puts(m); m.Close(); w.heap.Close() })},
	{"a Map whose values have a string", always(panics("field name is a string")),
		func(w *world) { hashmap.New[int, struct{ name string }](w.a, nil) },
		func(w *world) { hashmap.New[int, struct{ name freehold.String }](w.a, nil).Close() }},
	{"a Map of more than its allocator may have", always(refuses),
		func(w *world) {
			m := hashmap.New[int, int](freehold.NewLimit(w.a, 1000), nil)
			for i := 0; w.err == nil; i++ {
				w.err = m.Put(i, i)
			}
		},
		func(w *world) {
			m := hashmap.New[int, int](freehold.NewLimit(w.a, 1000), nil)
			w.err = m.Put(1, 1)
			m.Close()
		}},
	{"read of a string from Get after a Put that replaced it", caught{guard: guarded("use after free")},
		inTexts(func(w *world, m *hashmap.Map[int, string]) {
			s, _ := m.Get(1)
			m.Put(1, "another")
			w.sink = s[0]
		}),
		inTexts(func(w *world, m *hashmap.Map[int, string]) {
			m.Put(1, "another")
			s, _ := m.Get(1)
			w.sink = s[0]
		})},
	{"read of a string from Get after Close of its Map", caught{guard: guarded("use after free")},
		inTexts(func(w *world, m *hashmap.Map[int, string]) { s, _ := m.Get(1); m.Close(); w.sink = s[0] }),
		inTexts(func(w *world, m *hashmap.Map[int, string]) { s, _ := m.Get(1); w.sink = s[0]; m.Close() })},
	{"write to a value of At after its Map has grown", late,
		inMap(func(w *world, m *hashmap.Map[int, int]) { m.Put(1, 1); v := m.At(1); puts(m); *v = 2 }),
		inMap(func(w *world, m *hashmap.Map[int, int]) { m.Put(1, 1); puts(m); *m.At(1) = 2 })},
	{"write to a value of At after its Delete", caught{},
		inMap(func(w *world, m *hashmap.Map[int, int]) { puts(m); v := m.At(1); m.Delete(1); *v = 2 }),
		inMap(func(w *world, m *hashmap.Map[int, int]) { puts(m); *m.At(1) = 2; m.Delete(1) })},
	{"a Map that is never closed", caught{leak: leaks("hashmap.Map dropped without Close")}.andInTests(reports("leak of")),
		func(w *world) { m := hashmap.New[int, int](w.a, nil); m.Put(1, 1) },
		func(w *world) { m := hashmap.New[int, int](w.a, nil); m.Put(1, 1); m.Close() }},
	{"Put into a Map by two goroutines", caught{race: races},
		inMap(func(w *world, m *hashmap.Map[int, int]) { atOnce(func() { puts(m) }, func() { puts(m) }) }),
		inMap(func(w *world, m *hashmap.Map[int, int]) { atOnce(func() { puts(m) }, func() {}) })},
	{"Put into a Map beside Get in another goroutine", caught{race: races},
		inMap(func(w *world, m *hashmap.Map[int, int]) { puts(m); atOnce(func() { puts(m) }, func() { m.Get(1) }) }),
		inMap(func(w *world, m *hashmap.Map[int, int]) { puts(m); atOnce(func() { m.Get(2) }, func() { m.Get(1) }) })},
	{"Get after Close of a hashmap.Shared", always(panics("the map is closed")),
		inShards(func(w *world, m *hashmap.Shared[int, int]) { puts(m); m.Close(); m.Get(1) }),
		inShards(func(w *world, m *hashmap.Shared[int, int]) { puts(m); m.Get(1); m.Close() })},
	{"Close of a hashmap.Shared after Close of its heap", always(panics("is closed")),
		inShards(func(w *world, m *hashmap.Shared[int, int]) { puts(m); w.heap.Close() }),
		inShards(func(w *world, m *hashmap.Shared[int, int]) { puts(m); m.Close(); w.heap.Close() })},
	{"a hashmap.Shared that is never closed", caught{leak: leaks("hashmap.Shared dropped without Close")}.andInTests(reports("leak of")),
		func(w *world) { m := hashmap.NewShared[int, int](w.a, nil); m.Put(1, 1) },
		func(w *world) { m := hashmap.NewShared[int, int](w.a, nil); m.Put(1, 1); m.Close() }},
	{"Get after Close of a Frozen", always(panics("the map is closed")),
		inFrozen(func(w *world, m *hashmap.Frozen[int, []byte]) { m.Close(); m.Get(1) }),
		inFrozen(func(w *world, m *hashmap.Frozen[int, []byte]) { m.Get(1); m.Close(); m.Close() })},
	{"Close of a Frozen in its View, then a read of the value", always(faults),
		inFrozen(func(w *world, m *hashmap.Frozen[int, []byte]) {
			m.View(1, func(v []byte) { m.Close(); w.look(v) })
		}),
		inFrozen(func(w *world, m *hashmap.Frozen[int, []byte]) { m.View(1, w.look); m.Close() })},
	{"read of a value from View of a Frozen after Close", always(faults),
		inFrozen(func(w *world, m *hashmap.Frozen[int, []byte]) {
			var kept []byte
			m.View(1, func(v []byte) { kept = v })
			m.Close()
			w.look(kept)
		}),
		inFrozen(func(w *world, m *hashmap.Frozen[int, []byte]) {
			kept, _, _ := m.Get(1)
			m.Close()
			w.look(kept)
		})},
	{"write to a value in View of a Frozen", always(fails("a write to byte ")),
		inFrozen(func(w *world, m *hashmap.Frozen[int, []byte]) {
			_, w.err = m.View(1, func(v []byte) { v[0] = 'T' })
		}),
		inFrozen(func(w *world, m *hashmap.Frozen[int, []byte]) {
			_, w.err = m.View(1, func(v []byte) { bytes.ToUpper(v) })
		})},
	{"a Frozen that is never closed", caught{leak: leaks("hashmap.Frozen \"")},
		func(w *world) {
			dir := freehold.Must(os.MkdirTemp("", "freehold"))
			defer os.RemoveAll(dir)
			path := filepath.Join(dir, "frozen")
			freehold.Must(0, hashmap.Freeze(maps.All(map[int]int{1: 1}), path))
			freehold.Must(hashmap.OpenFrozen[int, int](path)).Get(1)
		},
		inFrozen(func(*world, *hashmap.Frozen[int, []byte]) {})},
}
