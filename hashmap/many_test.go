package hashmap

import (
	"errors"
	"fmt"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// PutMany is Put for each key in order, in a map that grows, and the last of equal keys
// wins. GetMany then has them all.
func TestPutMany(t *testing.T) {
	t.Run("words", func(t *testing.T) { putMany(t, func(i int) uint64 { return uint64(i) }) })
	t.Run("strings", func(t *testing.T) { putMany(t, func(i int) string { return fmt.Sprint(i) }) })
}

func putMany[K comparable](t *testing.T, key func(int) K) {
	for _, n := range []int{0, 1, batchKeys - 1, batchKeys, batchKeys + 1, 3*batchKeys + 5, 1000} {
		m := New[K, int](alloctest.New(t), nil)
		var keys []K
		var values []int
		for i := range n {
			keys = append(keys, key(i-i%3)) // each first of three, three times
			values = append(values, i)
		}
		if err := m.PutMany(keys, values); err != nil {
			t.Fatal(err)
		}
		mustCheck(t, m)
		got, found := make([]int, n), make([]bool, n)
		m.GetMany(keys, got, found)
		for i := range n {
			if want := min(i-i%3+2, n-1); !found[i] || got[i] != want {
				t.Errorf("%d keys: key %d has %d, %t, want %d", n, i, got[i], found[i], want)
			}
		}
		if m.Len() != (n+2)/3 {
			t.Errorf("%d entries of %d keys", m.Len(), n)
		}
		m.Close()
	}
}

// When memory runs out, PutMany has put all keys before the one that failed, and none after.
func TestPutManyRunsOutOfMemory(t *testing.T) {
	const n = 500
	keys := make([]uint64, n)
	texts := make([]string, n)
	for i := range keys {
		keys[i], texts[i] = uint64(i), fmt.Sprint(i)
	}
	for fail := range 40 {
		words, strings := New[uint64, uint64](alloctest.FailAfter(alloctest.New(t), fail), nil), New[string, string](alloctest.FailAfter(alloctest.New(t), fail), nil)
		for what, err := range map[string]error{"words": words.PutMany(keys, keys), "strings": strings.PutMany(texts, texts)} {
			if err != nil && !errors.Is(err, freehold.ErrOutOfMemory) {
				t.Fatalf("%s: %v", what, err)
			}
		}
		if fail < 5 && words.Len() == n || strings.Len() == n {
			t.Errorf("all entries are there after %d allocations", fail)
		}
		for i := range n {
			if v, ok := words.Get(keys[i]); ok != (i < words.Len()) || ok && v != keys[i] {
				t.Fatalf("word %d of %d: %d, %t", i, words.Len(), v, ok)
			}
			if v, ok := strings.Get(texts[i]); ok != (i < strings.Len()) || ok && v != texts[i] {
				t.Fatalf("string %d of %d: %q, %t", i, strings.Len(), v, ok)
			}
		}
		words.Close()
		strings.Close()
	}
}
