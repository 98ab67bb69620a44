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
		mustBeWhole(t, m)
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
	t.Run("words", func(t *testing.T) { putManyRunsOut(t, func(i int) uint64 { return uint64(i) }) })
	t.Run("strings", func(t *testing.T) { putManyRunsOut(t, func(i int) string { return fmt.Sprint(i) }) })
}

func putManyRunsOut[K comparable](t *testing.T, key func(int) K) {
	var keys []K
	for i := range 500 {
		keys = append(keys, key(i))
	}
	for fail := range 40 {
		m := New[K, K](alloctest.FailAfter(alloctest.New(t), fail), nil)
		err := m.PutMany(keys, keys)
		if err != nil && !errors.Is(err, freehold.ErrOutOfMemory) || (m.Len() == len(keys)) != (err == nil) || fail < 5 && err == nil {
			t.Fatalf("after %d allocations %v, and %d entries", fail, err, m.Len())
		}
		for i, k := range keys {
			if v, ok := m.Get(k); ok != (i < m.Len()) || ok && v != k {
				t.Fatalf("entry %d of %d: %v, %t", i, m.Len(), v, ok)
			}
		}
		m.Close()
	}
}
