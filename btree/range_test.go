package btree

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/freehold-go/freehold"
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

// A loop sees each entry once that DeleteFunc leaves, and none that it has deleted.
func TestDeleteFuncInALoop(t *testing.T) {
	up, down := []int{0}, []int{99}
	for i := 2; i < 100; i += 2 {
		up, down = append(up, i), append(down, 100-i)
	}
	down = append(down, 0)
	for name, loop := range map[string]struct {
		walk func(m *Map[int, int]) iter.Seq2[int, int]
		want []int
	}{
		"All":      {(*Map[int, int]).All, up},
		"Backward": {(*Map[int, int]).Backward, down},
	} {
		m := New[int, int](alloctest.New(t), nil)
		for i := range 100 {
			freehold.Must(0, m.Put(i, i))
		}
		var seen []int
		for k := range loop.walk(m) {
			if seen = append(seen, k); len(seen) == 1 {
				m.DeleteFunc(func(k int, _ *int) bool { return k%2 == 1 })
			}
		}
		if !slices.Equal(seen, loop.want) {
			t.Errorf("%s has %d, want %d", name, seen, loop.want)
		}
		m.Close()
	}
}
