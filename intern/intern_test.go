package intern

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/hash"
	"github.com/freehold-go/freehold/internal/panics"
)

// sets are the constructors of both.
var sets = map[string]func(freehold.Allocator, *Options) subject{
	"intern.Strings": func(a freehold.Allocator, o *Options) subject { return New(a, o) },
	"intern.Shared":  func(a freehold.Allocator, o *Options) subject { return NewShared(a, o) },
}

func forBoth(t *testing.T, f func(t *testing.T, kind string, create func(freehold.Allocator, *Options) subject)) {
	for kind, create := range sets {
		t.Run(kind, func(t *testing.T) { f(t, kind, create) })
	}
}

// IDs count from 0 in the order of first sight; strings of every length up to 600 and a
// large one come back as they were.
func TestStringsComeBack(t *testing.T) {
	forBoth(t, func(t *testing.T, _ string, create func(freehold.Allocator, *Options) subject) {
		s := create(alloctest.New(t), nil)
		defer s.Close()
		var all []string
		for n := range 600 {
			all = append(all, strings.Repeat("x\x00é", n)[:n])
		}
		all = append(all, strings.Repeat("large", 1<<20))
		bytes := 0
		for i, v := range all {
			if id, err := s.Intern(v); err != nil || int(id) != i {
				t.Fatalf("%d bytes: %d, %v", len(v), id, err)
			}
			bytes += len(v)
		}
		for i, v := range all {
			id, err := s.InternBytes([]byte(v))
			if err != nil || int(id) != i || s.Value(id) != v {
				t.Fatalf("%d bytes: %d, %v", len(v), id, err)
			}
			if id, ok := s.LookupBytes([]byte(v)); !ok || int(id) != i {
				t.Fatalf("%d bytes: %d, %t", len(v), id, ok)
			}
			if id, ok := s.Lookup(v + "y"); ok {
				t.Fatalf("%d bytes and one more: %d", len(v), id)
			}
		}
		if st := s.Stats(); s.Len() != len(all) || st.Len != len(all) || st.LiveBytes != bytes || st.IDs != len(all) || st.Reserved < bytes {
			t.Errorf("%+v", st)
		}
	})
}

// Strings that come and go take no more memory in the end.
func TestChurnTakesNoMore(t *testing.T) {
	const live, rounds = 500, 40
	forBoth(t, func(t *testing.T, _ string, create func(freehold.Allocator, *Options) subject) {
		s := create(alloctest.New(t), &Options{RefCounts: true})
		defer s.Close()
		at := 0
		for round := range rounds {
			for i := range live {
				freehold.Must(s.Intern(fmt.Sprint("round ", round, strings.Repeat("y", i%300))))
				freehold.Must(s.Intern(fmt.Sprint("round ", round, strings.Repeat("y", i%300))))
			}
			for id := range ID(s.Stats().IDs) {
				for s.Stats().Len > 0 && !s.Release(id) {
				}
			}
			switch st := s.Stats(); {
			case st.Len != 0 || st.LiveBytes != 0:
				t.Fatalf("%+v", st)
			case round == 3:
				at = st.Reserved
			case round > 3 && st.Reserved > at+at/10:
				t.Fatalf("%d bytes after round %d, and %d after the third", st.Reserved, round, at)
			}
		}
	})
}

// Intern of bytes and of a known string allocate nothing on the Go heap.
func TestNothingOnTheGoHeap(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("the counters of the coverage allocate")
	}
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	forBoth(t, func(t *testing.T, _ string, create func(freehold.Allocator, *Options) subject) {
		s := create(heap, nil)
		defer s.Close()
		b := []byte("0000000000")
		next := func() {
			for i := len(b) - 1; i >= 0; i-- {
				if b[i]++; b[i] <= '9' {
					break
				}
				b[i] = '0'
			}
		}
		var before, after runtime.MemStats
		for range 100 {
			next()
			freehold.Must(s.InternBytes(b))
		}
		if n := testing.AllocsPerRun(1000, func() { s.InternBytes(b); s.LookupBytes(b); s.Value(1) }); n != 0 {
			t.Errorf("%v allocations for a known string", n)
		}
		runtime.ReadMemStats(&before)
		for range 100_000 {
			next()
			freehold.Must(s.InternBytes(b))
		}
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; n > 1000 && !raceBuild {
			t.Errorf("%d allocations for 100,000 strings", n)
		}
	})
}

// Misuse panics and says what was wrong.
func TestPanics(t *testing.T) {
	forBoth(t, func(t *testing.T, kind string, create func(freehold.Allocator, *Options) subject) {
		heap := freehold.NewHeap(nil)
		defer heap.Close()
		plain, counted := create(heap, nil), create(heap, &Options{RefCounts: true})
		id := freehold.Must(counted.Intern("a"))
		counted.Release(id)
		plain.Intern("a")
		defer plain.Close()
		defer counted.Close()
		tests := []struct {
			call string
			do   func()
			want string
		}{
			{kind + ".Value", func() { plain.Value(1) }, "no string has the ID 1"},
			{kind + ".Value", func() { plain.Value(1<<32 - 1) }, "no string has the ID 4294967295"},
			{kind + ".Release", func() { plain.Release(0) }, "references are not counted: Options.RefCounts is false"},
			{kind + ".Retain", func() { plain.Retain(0) }, "references are not counted: Options.RefCounts is false"},
			{kind + ".Value", func() { counted.Value(id) }, "the last reference to the string with the ID 0 was released"},
			{kind + ".Release", func() { counted.Release(id) }, "the last reference to the string with the ID 0 was released"},
			{kind + ".Value", func() { counted.Value(id + 1) }, "no string has the ID 1"},
			{kind + ".Retain", func() { counted.Retain(id) }, "the last reference to the string with the ID 0 was released"},
		}
		for _, tt := range tests {
			if got, want := panics.Of(tt.do), "freehold: "+tt.call+": "+tt.want; got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		}
	})
}

// Strings with one hash that differ in one byte are different strings.
func TestEachByteCounts(t *testing.T) {
	for n := range 40 {
		s := New(alloctest.New(t), nil)
		s.hash = func(hash.Seed, string) uint64 { return 0 }
		b := make([]byte, n)
		for at := range n + 1 {
			if at < n {
				b[at] = 1
			}
			if id, err := s.InternBytes(b); err != nil || int(id) != at {
				t.Errorf("%d bytes that differ in byte %d: %d, %v", n, at, id, err)
			}
			clear(b)
		}
		s.Close()
	}
}
