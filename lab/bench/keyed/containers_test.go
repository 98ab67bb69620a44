package keyed

import (
	"slices"
	"testing"
)

// Each adapter finds the keys that it has put, and none that it has deleted.
func TestNumberContainers(t *testing.T) {
	for _, peers := range [][]peer[uint64]{numbers, shared, ordered} {
		for _, p := range peers {
			t.Run(p.name, func(t *testing.T) { checkContainer(t, p, order.numbers) })
		}
	}
}

func TestTextContainers(t *testing.T) {
	for _, p := range slices.Concat(texts, textsToTexts, sharedBytes, interned) {
		t.Run(p.name, func(t *testing.T) { checkContainer(t, p, order.texts) })
	}
}

func checkContainer[K any](t *testing.T, p peer[K], keys func(order) source[K]) {
	const n = 1000
	f := field[K]{keys: keys, n: n, room: n}
	c := f.filled(p)
	if c.get == nil {
		return // what is interned has no values
	}
	check := func(from uint64, want bool) {
		f.keys(order{from: from, n: n}).each(n, func(i int, batch []K) {
			for j, k := range batch {
				if v, ok := c.get(k); ok != want || ok && v != uint64(i+j) {
					t.Fatalf("key %d: %d, %v", from+uint64(i+j), v, ok)
				}
			}
		})
	}
	check(0, true)
	check(n, false)
	if c.getMany != nil {
		var values [16]uint64
		var found [16]bool
		f.keys(order{n: 16}).each(16, func(_ int, batch []K) { c.getMany(batch, values[:], found[:]) })
		if values[15] != 15 || !found[15] {
			t.Errorf("many: %v, %v", values, found)
		}
	}
	if c.scan != nil {
		want := uint64(0)
		for i := range uint64(n) {
			want += keyOf(i) ^ i
		}
		if sum := c.scan(); sum != want {
			t.Errorf("scanned %d, want %d", sum, want)
		}
	}
	if c.delete != nil {
		f.keys(order{n: n}).each(n, func(_ int, batch []K) {
			for _, k := range batch {
				c.delete(k)
			}
		})
		check(0, false)
	}
}
