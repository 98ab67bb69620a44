package hashmap

import (
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// Keys and values of the greatest lengths that a reference holds, and of one more. Each replaces each
// of the others. A replacement of the same length needs no memory.
func TestPairsOfAllLengths(t *testing.T) {
	a := &switched{Allocator: alloctest.New(t)}
	m := New[string, []byte](a, nil)
	defer m.Close()
	lengths := []int{0, 1, 7, 8, 16, 17, pairKeyLimit - 1, pairKeyLimit, pairKeyLimit + 1, valueLimit, valueLimit + 1, 5000}
	want := map[string]string{}
	set := func(key, value string) {
		a.failing = alloctest.FailAfter(a.Allocator, 0)
		before, had := want[key]
		if err := m.Put(key, []byte(value)); (err == nil) != (had && (len(value) == len(before) || key+value == "")) {
			t.Fatalf("a value of %d bytes in place of one of %d, without memory: %v", len(value), len(before), err)
		}
		a.failing = nil
		succeed(m.Put(key, []byte(value)))
		want[key] = value
	}
	for _, byte := range []string{"x", "y"} {
		for _, n := range lengths {
			for _, v := range lengths {
				set(strings.Repeat("k", n), strings.Repeat(byte, v))
				set(strings.Repeat("k", n), strings.Repeat("z", v))
			}
		}
		mustBeWhole(t, m)
		for k, v := range want {
			if got, ok := m.Get(k); !ok || string(got) != v {
				t.Errorf("a key of %d bytes has a value of %d, want %d", len(k), len(got), len(v))
			}
		}
	}
}

// A value may be put that is a part of the one it replaces, or of a key.
func TestPairsOfTheMapsOwnMemory(t *testing.T) {
	m := New[string, string](alloctest.New(t), nil)
	defer m.Close()
	succeed(m.Put("key", "0123456789"))
	for _, change := range []func(v string) string{
		func(v string) string { return v[:len(v)-1] },
		func(v string) string { return v[1:] },
		func(v string) string { return v },
		func(v string) string { return v[:0] },
	} {
		v, _ := m.Get("key")
		want := strings.Clone(change(v))
		succeed(m.Put("key", change(v)))
		if got, _ := m.Get("key"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for k := range m.Keys() {
		succeed(m.Put(k, k[1:]))
	}
	if v, _ := m.Get("key"); v != "ey" {
		t.Errorf("%q, want %q", v, "ey")
	}
}

// A loop whose table is a copy yields the values that have replaced others since.
func TestPairsReplacedInALoop(t *testing.T) {
	m := New[string, string](alloctest.New(t), nil)
	defer m.Close()
	const before, after = 50, 1000
	put := func(from, to int, value string) {
		for i := from; i < to; i++ {
			succeed(m.Put(textKey(i+1), value))
		}
	}
	put(0, before, "first")
	seen := 0
	for k, v := range m.All() {
		if seen++; seen == 1 {
			put(before, after, "first") // the table grows
			put(0, after, "another")
		} else if v != "another" {
			t.Errorf("%q has %q", k, v)
		}
	}
	if seen < before {
		t.Errorf("%d entries, want %d or more", seen, before)
	}
}

// reusing is an allocator whose next block is the last freed one, if that has the same size.
type reusing struct {
	freehold.Allocator
	last []byte
}

func (r *reusing) Alloc(size, align int) ([]byte, error) {
	if b := r.last; size == len(b) {
		r.last = nil
		return b, nil
	}
	return r.Allocator.Alloc(size, align)
}

func (r *reusing) Free(b []byte) {
	if r.last != nil {
		r.Allocator.Free(r.last)
	}
	r.last = b
}

// A loop whose table is a copy yields an entry once, also if the entry has got the block of one that
// was deleted. All hashes are alike, so either slot of the copy leads to the entry.
func TestLoopYieldsAPairInAReusedBlockOnce(t *testing.T) {
	memory := &reusing{Allocator: alloctest.New(t)}
	m := makeMap[string, string](memory, 1<<64-1).(*Map[string, string])
	const short, long = "", "a longer value"
	for _, k := range []string{"a", "b", "c"} {
		succeed(m.Put(k, long))
	}
	seen := map[string]int{}
	for k := range m.Keys() {
		if seen[strings.Clone(k)]++; len(seen) > 1 {
			continue
		}
		for i := range 2 * groupSlots { // the table grows
			succeed(m.Put(textKey(100+i), short))
		}
		kept, deleted := "b", "c"
		switch k {
		case kept:
			kept = "a"
		case deleted:
			deleted = "a"
		}
		succeed(m.Put(kept, short))
		m.Delete(deleted)
		succeed(m.Put(kept, long))
		mustBeWhole(t, m)
	}
	if len(seen) < 2 || seen["a"]+seen["b"]+seen["c"] != 2 {
		t.Errorf("the loop yields %v", seen)
	}
	m.Close()
	memory.Allocator.Free(memory.last)
}

// A search for a string whose bytes are on the stack makes no Go allocation.
func TestKeysOnTheStack(t *testing.T) {
	m := New[string, string](alloctest.New(t), nil)
	defer m.Close()
	succeed(m.Put(strings.Repeat("k", 24), "value"))
	b := []byte(strings.Repeat("k", 24))
	found := false
	if n := testing.AllocsPerRun(100, func() { _, found = m.Get(string(b)) }); n != 0 || !found {
		t.Errorf("%v allocations; found: %t", n, found)
	}
}
