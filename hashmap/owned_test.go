package hashmap

import (
	"errors"
	"math/bits"
	"slices"
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

func TestClosedMapOfStringsPanics(t *testing.T) {
	m := New[string, int](alloctest.New(t), nil)
	if err := m.Put("key", 1); err != nil {
		t.Fatal(err)
	}
	m.Close()
	for name, call := range map[string]func(){
		"Get":    func() { m.Get("key") },
		"At":     func() { m.At("key") },
		"Put":    func() { m.Put("key", 1) },
		"Delete": func() { m.Delete("key") },
	} {
		wantPanic(t, "freehold: hashmap.Map."+name+": the map is closed", call)
		for _, k := range []string{"", "long key", "a longer key than sixteen"} {
			wantPanic(t, "freehold: hashmap.Map.Get: the map is closed", func() { m.Get(k) })
		}
	}
}

// distant is an allocator whose next block has an address beyond 48 bits, where there is
// no memory.
type distant struct {
	freehold.Allocator
	next bool
	out  [][]byte
}

func (d *distant) Alloc(size, align int) ([]byte, error) {
	if !d.next {
		return d.Allocator.Alloc(size, align)
	}
	d.next = false
	b := bytesAt(1<<48, size)
	d.out = append(d.out, b)
	return b, nil
}

func (d *distant) Free(b []byte) {
	for i, o := range d.out {
		if &o[0] == &b[0] {
			d.out = slices.Delete(d.out, i, i+1)
			return
		}
	}
	d.Allocator.Free(b)
}

// A block that no reference can hold is returned, and out of memory.
func TestDistantBlocks(t *testing.T) {
	if bits.UintSize == 32 {
		t.Skip("there are no such addresses")
	}
	d := &distant{Allocator: alloctest.New(t)}
	m := New[string, string](d, nil)
	defer m.Close()
	if err := m.Put("a", "b"); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"a", "c"} {
		d.next = true
		if err := m.Put(k, "d"); !errors.Is(err, freehold.ErrOutOfMemory) || d.next || len(d.out) > 0 {
			t.Errorf("error %v, and %d blocks are left", err, len(d.out))
		}
		mustCheck(t, m)
	}
	if v, _ := m.Get("a"); m.Len() != 1 || v != "b" {
		t.Errorf("%d entries, the first is %q", m.Len(), v)
	}

	s := NewShared[string, string](d, nil)
	defer s.Close()
	succeed(s.Put("a", "b"))
	for _, k := range []string{"a", "c"} {
		d.next = true
		if err := s.Put(k, "d"); !errors.Is(err, freehold.ErrOutOfMemory) || d.next || len(d.out) > 0 {
			t.Errorf("Shared: error %v, and %d blocks are left", err, len(d.out))
		}
	}
	if v, _ := s.Get("a"); s.Len() != 1 || v != "b" {
		t.Errorf("Shared: %d entries, the first is %q", s.Len(), v)
	}
}
