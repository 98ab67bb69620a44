package hashmap

import (
	"strings"
	"testing"

	"github.com/freehold-go/freehold/alloctest"
)

// Strings that differ in their length or in one byte are different keys, also where
// hashes tell nothing.
func TestSimilarStrings(t *testing.T) {
	var keys []string
	for n := range 20 {
		same := strings.Repeat("a", n)
		keys = append(keys, same)
		for i := range n {
			keys = append(keys, same[:i]+"b"+same[i+1:])
		}
	}
	m := New[string, int](alloctest.New(t), nil)
	defer m.Close()
	m.hash.narrow = 1<<64 - 1
	for i, k := range keys {
		if err := m.Put(k, i); err != nil {
			t.Fatal(err)
		}
		for j, other := range keys {
			if v, ok := m.Get(other); ok != (i == j) || ok && v != i {
				t.Fatalf("the map has %q, and finds %q: %d, %t", k, other, v, ok)
			}
		}
		m.Clear()
	}
	for i, k := range keys {
		if err := m.Put(k, i); err != nil {
			t.Fatal(err)
		}
	}
	for i, k := range keys {
		if v, ok := m.Get(k); !ok || v != i {
			t.Errorf("%q is %d, %t, want %d", k, v, ok, i)
		}
	}
}
