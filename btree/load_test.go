package btree

import (
	"errors"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// sequence yields keys with themselves as values.
func sequence(keys ...int) func(func(int, int) bool) {
	return func(yield func(int, int) bool) {
		for _, k := range keys {
			if !yield(k, k) {
				return
			}
		}
	}
}

func TestLoad(t *testing.T) {
	for _, test := range []struct {
		name        string
		there, load []int
		err         string
	}{
		{"nothing", nil, nil, ""},
		{"nothing behind something", []int{1}, nil, ""},
		{"one", nil, []int{5}, ""},
		{"some", nil, []int{-1, 0, 7}, ""},
		{"behind others", []int{1, 2}, []int{3, 4}, ""},
		{"before others", []int{1, 2}, []int{0, 4}, "entry 0"},
		{"among others", []int{1, 3}, []int{2}, "entry 0"},
		{"the last one again", []int{1, 3}, []int{3, 4}, "entry 0"},
		{"twice the same", nil, []int{1, 2, 2}, "entry 2"},
		{"one too late", []int{0}, []int{1, 3, 2, 4}, "entry 2"},
	} {
		m := New[int, int](alloctest.New(t), nil)
		for _, k := range test.there {
			_ = m.Put(k, k)
		}
		err := m.Load(sequence(test.load...))
		m.check()
		want := test.there
		if test.err == "" {
			want = append(want, test.load...)
		} else if !errors.Is(err, ErrUnsorted) || err.Error() != "freehold: btree: keys do not ascend: "+test.err+" of those to load has a key not greater than that before" {
			t.Errorf("%s: error %v, want one of %s", test.name, err, test.err)
		}
		if test.err == "" && err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		i := 0
		for k, v := range m.All() {
			if i >= len(want) || k != want[i] || v != k {
				t.Errorf("%s: entry %d is %d: %d, want %v", test.name, i, k, v, want)
			}
			i++
		}
		if i != len(want) {
			t.Errorf("%s: %d entries, want %v", test.name, i, want)
		}
		m.Close()
	}
}

// TestLoadOfEachLength is also one of failures at each entry and each allocation.
func TestLoadOfEachLength(t *testing.T) {
	f := &faucet{alloctest.New(t), -1}
	ascending := func(n, fails int) func(func(uint64, [40]byte) bool) {
		return func(yield func(uint64, [40]byte) bool) {
			for i := range n {
				if i == fails {
					panic("mine")
				}
				if !yield(uint64(i), [40]byte{byte(i)}) {
					return
				}
			}
		}
	}
	for n := range 3000 {
		if n > 200 && n%97 != 0 {
			continue
		}
		m := New[uint64, [40]byte](f, nil)
		before := m.Stats()
		if n > 0 {
			mustPanic(t, "mine", func() { _ = m.Load(ascending(n, n-1)) })
			f.left = n % 5
			if err := m.Load(ascending(n, -1)); err != nil && !errors.Is(err, freehold.ErrOutOfMemory) {
				t.Fatal(err)
			} else if err == nil {
				m.DeleteFunc(func(uint64, *[40]byte) bool { return true })
			}
			f.left = -1
		}
		if st := m.Stats(); st != before {
			t.Fatalf("loads of %d entries that fail leave %+v", n, st)
		}
		if err := m.Load(ascending(n, -1)); err != nil {
			t.Fatal(err)
		}
		m.check()
		if m.Len() != n {
			t.Fatalf("%d entries are loaded, want %d", m.Len(), n)
		}
		for i := range n {
			if v, ok := m.Get(uint64(i)); !ok || v[0] != byte(i) {
				t.Fatalf("%d entries are loaded, and key %d is not there", n, i)
			}
		}
		m.Close()
	}
}
