package btree

import (
	"fmt"
	"testing"

	"github.com/freehold-go/freehold/alloctest"
)

// The bound of a Range may be a key of the map that the loop deletes, and whose memory
// others get then.
func TestRangeToAKeyThatIsDeleted(t *testing.T) {
	m := New[string, int](alloctest.New(t), nil)
	defer m.Close()
	const n = 1000
	for i := range n {
		if err := m.Put(fmt.Sprintf("key %04d", i), i); err != nil {
			t.Fatal(err)
		}
	}
	last, _, _ := m.Max()
	seen := 0
	for _, v := range m.Range("", last) {
		if seen++; v != 0 {
			continue
		}
		m.Delete(fmt.Sprintf("key %04d", n-1))
		if err := m.Put("kez 0000", n); err != nil { // of the same length, behind the range
			t.Fatal(err)
		}
	}
	if seen != n-1 {
		t.Errorf("%d keys are less than the bound, and %d were seen", n-1, seen)
	}
}

// The bounds of a DeleteRange may be parts of keys that it deletes, and whose memory is
// then of others.
func TestDeleteRangeToAPartOfAKeyThatIsDeleted(t *testing.T) {
	m := New[string, int](alloctest.New(t), nil)
	defer m.Close()
	const n = 1000 // in several leaves
	for _, k := range []string{"!z", "zz"} {
		if err := m.Put(k, 0); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		if err := m.Put(fmt.Sprintf("key %04d", i), i); err != nil {
			t.Fatal(err)
		}
	}
	first, _, _ := m.Min()
	if got := m.DeleteRange(first[:1], first[1:]); got != n+1 || m.Len() != 1 {
		t.Errorf("%d keys are less than the bound, %d were deleted, and %d are left", n+1, got, m.Len())
	}
}
