package btree

import (
	"cmp"
	"testing"

	"github.com/freehold-go/freehold/alloctest"
)

// A Put whose compare panics, at any of its calls, leaves the entries and their counts as they
// were, also where nodes split or a clone shares them.
func TestPutWhoseComparePanics(t *testing.T) {
	const keys = 120
	for _, cloned := range []bool{false, true} {
		left := -1 // calls of compare before one panics, unless negative
		m := NewFunc[bytes200, uint64](alloctest.New(t), func(a, b bytes200) int {
			if left == 0 {
				panic("mine")
			}
			left--
			return cmp.Compare(a[24], b[24])
		}, &Options{Ranks: true})
		for i := range keys {
			k := as200(i * 37 % keys)
			c := m
			if cloned {
				c = m.Clone()
			}
			failed := true
			for calls := 0; failed; calls++ {
				func() {
					defer func() { _ = recover() }()
					left = calls
					_ = m.Put(k, 1)
					failed = false
				}()
				left = -1
				m.check()
				if _, found := m.Get(k); found == failed || m.Len() != i+1 && !failed || m.Len() != i && failed {
					t.Fatalf("after a panic %t in call %d of compare: found %t, %d entries", failed, calls, found, m.Len())
				}
			}
			if cloned {
				c.check()
				c.Close()
			}
		}
		if m.height < 3 {
			t.Errorf("the map has %d levels", m.height)
		}
		m.Close()
	}
}

// A compare that contradicts itself between the search for a key and that for its path makes counts
// wrong. GetAt then finds nothing behind the last entry of a leaf.
func TestGetAtOfWrongCounts(t *testing.T) {
	left := -1 // calls of compare before it contradicts itself, unless negative
	m := NewFunc[int, int](alloctest.New(t), func(a, b int) int {
		if left == 0 {
			return -1 // the path leads to the last leaf
		}
		left--
		return cmp.Compare(a, b)
	}, &Options{Ranks: true})
	defer m.Close()
	for i := range m.leaf.slots + 1 {
		_ = m.Put(2*i, 0)
	}
	left = -1
	m.Get(1)
	left = -1 - left // the calls of its search
	_ = m.Put(1, 0)
	left = -1
	if k, _, ok := m.GetAt(m.Len() - 1); ok {
		t.Errorf("GetAt has the key %d behind a leaf", k)
	}
}
