package hashmap

import (
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
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
	m.narrowBy(1<<64 - 1)
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

// The maps keep no byte of the keys that they were given.
func TestKeysGivenAsBytesAreCopied(t *testing.T) {
	m, s := New[string, int](freehold.Default(), nil), NewShared[string, int](freehold.Default(), nil)
	defer m.Close()
	defer s.Close()
	key := []byte("one")
	add := func(n *int, _ bool) { *n++ }
	for _, err := range []error{UpdateBytes(m, key, add), PutSharedBytes(s, key, 1)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	copy(key, "two")
	for _, err := range []error{UpdateBytes(m, key, add), UpdateSharedBytes(s, key, add)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if n, found, err := PutBytesIfAbsent(m, key, 5); n != 1 || !found || err != nil {
		t.Errorf("PutBytesIfAbsent of a key that is there: %d, %t, %v", n, found, err)
	}
	if n, found, err := PutSharedBytesIfAbsent(s, key, 5); n != 1 || !found || err != nil {
		t.Errorf("PutSharedBytesIfAbsent of a key that is there: %d, %t, %v", n, found, err)
	}
	copy(key, "six")
	if n, found, err := PutBytesIfAbsent(m, key, 6); n != 6 || found || err != nil {
		t.Errorf("PutBytesIfAbsent of a new key: %d, %t, %v", n, found, err)
	}
	if n, found, err := PutSharedBytesIfAbsent(s, key, 6); n != 6 || found || err != nil {
		t.Errorf("PutSharedBytesIfAbsent of a new key: %d, %t, %v", n, found, err)
	}
	copy(key, "ten")
	store := func(n *int, _ bool) freehold.Change { *n = 1; return freehold.Store }
	for range 2 {
		if _, _, err := ComputeBytes(m, key, store); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ComputeSharedBytes(s, key, store); err != nil {
			t.Fatal(err)
		}
	}
	copy(key, "???")
	for _, k := range []string{"one", "two", "ten"} {
		plain, _ := m.Get(k)
		shared, _ := GetSharedBytes(s, []byte(k))
		viewed := 0
		ViewSharedBytes(s, []byte(k), func(n int) { viewed = n })
		if plain != 1 || shared != 1 || viewed != 1 {
			t.Errorf("%s: %d, %d and %d, want 1", k, plain, shared, viewed)
		}
	}
	six := []byte("six")
	if DeleteBytes(m, key) || !DeleteBytes(m, six) || m.Len() != 3 {
		t.Errorf("DeleteBytes left %d keys, want 3", m.Len())
	}
	is := func(want int) func(int) bool { return func(n int) bool { return n == want } }
	if DeleteSharedBytesIf(s, six, is(5)) || !DeleteSharedBytesIf(s, six, is(6)) || DeleteSharedBytes(s, six) || !DeleteSharedBytes(s, []byte("one")) || s.Len() != 2 {
		t.Errorf("the deletions left %d keys, want 2", s.Len())
	}
}

// AppendSharedBytes appends the value, and nothing where there is none.
func TestAppendSharedBytes(t *testing.T) {
	s := NewShared[string, string](freehold.Default(), nil)
	defer s.Close()
	if err := s.Put("k", "value"); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"k": "a value", "none": "a "} {
		if got, ok := AppendSharedBytes(s, []byte("a "), []byte(key)); string(got) != want || ok != (key == "k") {
			t.Errorf("%s: %q, %t", key, got, ok)
		}
	}
}

// A view of a string has no capacity, which would be stored behind the string.
func TestViewOfAString(t *testing.T) {
	type view struct {
		text string
		next uintptr
	}
	if v := viewOf[view](isString, "text"); v != (view{text: "text"}) {
		t.Errorf("viewOf = %+v", v)
	}
}
