package misuse

import (
	"maps"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/btree"
)

// inTree runs a program with an ordered map of numbers, which it closes afterwards.
func inTree(f func(w *world, m *btree.Map[int, int])) func(w *world) {
	return func(w *world) {
		m := btree.New[int, int](w.a, nil)
		f(w, m)
		m.Close()
	}
}

// inWords runs a program with an ordered map with one word, which it closes afterwards.
func inWords(f func(w *world, m *btree.Map[string, int])) func(w *world) {
	return func(w *world) {
		m := btree.New[string, int](w.a, nil)
		freehold.Must(0, m.Put("word", 1))
		f(w, m)
		m.Close()
	}
}

var btreePrograms = []program{
	{"Get after Close of an ordered Map", always(panics("the map is closed")),
		inTree(func(w *world, m *btree.Map[int, int]) { puts(m); m.Close(); m.Get(1) }),
		inTree(func(w *world, m *btree.Map[int, int]) { puts(m); m.Get(1); m.Close() })},
	{"Close of an ordered Map after Close of its heap", always(panics("is closed")),
		inTree(func(w *world, m *btree.Map[int, int]) { puts(m); w.heap.Close() }),
		inTree(func(w *world, m *btree.Map[int, int]) { puts(m); m.Close(); w.heap.Close() })},
	{"an ordered Map whose values are strings", always(panics("V=string")),
		func(w *world) { btree.New[int, string](w.a, nil) },
		func(w *world) { btree.New[int, freehold.String](w.a, nil).Close() }},
	{"Put in a function that Update calls", always(panics("must not change the map")),
		inTree(func(w *world, m *btree.Map[int, int]) { m.Update(1, func(v *int, _ bool) { m.Put(2, 2) }) }),
		inTree(func(w *world, m *btree.Map[int, int]) { m.Update(1, func(v *int, _ bool) { m.Get(2) }) })},
	{"Delete in a function that DeleteFunc calls", always(panics("must not change the map")),
		inTree(func(w *world, m *btree.Map[int, int]) {
			puts(m)
			m.DeleteFunc(func(k int, _ *int) bool { return m.Delete(k) })
		}),
		inTree(func(w *world, m *btree.Map[int, int]) {
			puts(m)
			m.DeleteFunc(func(k int, _ *int) bool { return true })
		})},
	{"Load of keys that do not ascend", always(fails("do not ascend")),
		inTree(func(w *world, m *btree.Map[int, int]) { puts(m); w.err = m.Load(maps.All(map[int]int{1: 1})) }),
		inTree(func(w *world, m *btree.Map[int, int]) { puts(m); w.err = m.Load(maps.All(map[int]int{1000: 1})) })},
	{"read of a string key after its Delete", caught{guard: guarded("use after free")},
		inWords(func(w *world, m *btree.Map[string, int]) { k, _, _ := m.Min(); m.Delete("word"); w.sink = k[0] }),
		inWords(func(w *world, m *btree.Map[string, int]) { k, _, _ := m.Min(); w.sink = k[0]; m.Delete("word") })},
	{"write to a value of At after a Put of another key", caught{},
		inTree(func(w *world, m *btree.Map[int, int]) { puts(m); v := m.At(1); m.Put(-1, 1); *v = 2 }),
		inTree(func(w *world, m *btree.Map[int, int]) { puts(m); m.Put(-1, 1); *m.At(1) = 2 })},
	{"write to a value of At after Close of its ordered Map", late,
		inTree(func(w *world, m *btree.Map[int, int]) { puts(m); v := m.At(1); m.Close(); *v = 2 }),
		inTree(func(w *world, m *btree.Map[int, int]) { puts(m); *m.At(1) = 2; m.Close() })},
	{"an ordered Map that is never closed", caught{leak: leaks("btree.Map dropped without Close")}.andInTests(reports("leak of")),
		func(w *world) { m := btree.New[int, int](w.a, nil); m.Put(1, 1) },
		func(w *world) { m := btree.New[int, int](w.a, nil); m.Put(1, 1); m.Close() }},
	{"Put into an ordered Map by two goroutines", caught{race: races},
		inTree(func(w *world, m *btree.Map[int, int]) { atOnce(func() { puts(m) }, func() { puts(m) }) }),
		inTree(func(w *world, m *btree.Map[int, int]) { atOnce(func() { puts(m) }, func() {}) })},
}
