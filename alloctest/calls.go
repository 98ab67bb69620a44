// Calls: empty blocks, wrong arguments, sizes that no memory has, owners, and wrong calls of Free.

package alloctest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
)

// checkEmpty: size 0 is valid everywhere, and Free accepts nil and empty blocks.
func checkEmpty(t testing.TB, a freehold.Allocator, o Options) {
	for range 100 {
		for _, call := range []func(size, align int) ([]byte, error){a.Alloc, a.Zeroed} {
			b, err := call(0, 1)
			if err != nil || b == nil || len(b) != 0 || cap(b) != 0 {
				t.Fatalf("a block of size 0 is nil: %t, len %d, cap %d, error %v", b == nil, len(b), cap(b), err)
			}
			if r, ok := a.Resize(b, 8); ok {
				t.Fatalf("Resize of an empty block to 8 bytes gave %d; no alignment is known for them", len(r))
			}
			if r, ok := a.Resize(b, 0); !ok || r == nil || len(r) != 0 {
				t.Fatalf("Resize of an empty block to 0 bytes: %t, nil: %t, len %d", ok, r == nil, len(r))
			}
			a.Free(b)
		}
		a.Free(nil)
		a.Free([]byte{})
	}

	b, err := freehold.Realloc(a, nil, 24, 8)
	if err != nil || len(b) != 24 {
		t.Fatalf("Realloc of nil to 24 bytes: %d bytes, %v", len(b), err)
	}
	b, err = freehold.Realloc(a, b, 0, 8)
	if err != nil || b == nil || len(b) != 0 {
		t.Fatalf("Realloc to 0 bytes: nil: %t, %d bytes, %v", b == nil, len(b), err)
	}
	a.Free(b)
	if b = must(t, a, o, 24, 8); b == nil {
		t.Fatal("out of memory after empty blocks only")
	}
	a.Free(b)
}

// checkArguments: wrong arguments panic with a message and do no harm.
func checkArguments(t testing.TB, a freehold.Allocator, o Options) {
	s := &shelf{t: t, a: a}
	for range 8 {
		s.add(must(t, a, o, 24, 8))
	}
	b := s.blocks[0].b
	calls := []struct {
		name string
		call func()
	}{
		{"Alloc(-1, 8)", func() { a.Alloc(-1, 8) }},
		{"Alloc(math.MinInt, 8)", func() { a.Alloc(math.MinInt, 8) }},
		{"Zeroed(-1, 8)", func() { a.Zeroed(-1, 8) }},
		{"Zeroed(math.MinInt, 8)", func() { a.Zeroed(math.MinInt, 8) }},
		{"Resize(b, -1)", func() { a.Resize(b, -1) }},
		{"Resize(b, math.MinInt)", func() { a.Resize(b, math.MinInt) }},
		{"Alloc(8, 0)", func() { a.Alloc(8, 0) }},
		{"Alloc(8, -8)", func() { a.Alloc(8, -8) }},
		{"Alloc(8, math.MinInt)", func() { a.Alloc(8, math.MinInt) }}, // one bit, yet no power of two
		{"Alloc(8, 3)", func() { a.Alloc(8, 3) }},
		{"Alloc(8, 24)", func() { a.Alloc(8, 24) }},
		{"Zeroed(8, 0)", func() { a.Zeroed(8, 0) }},
		{"Zeroed(8, 12)", func() { a.Zeroed(8, 12) }},
	}
	for _, c := range calls {
		mustPanic(t, c.name, c.call)
		s.check("after " + c.name)
	}
	for range 8 {
		s.add(must(t, a, o, 24, 8))
	}
	s.clear("at the end")
}

// mustPanic checks that call panics with a message of freehold's form.
func mustPanic(t testing.TB, name string, call func()) {
	t.Helper()
	defer func() {
		t.Helper()
		switch r := recover(); {
		case r == nil:
			t.Fatalf("%s did not panic", name)
		case !strings.HasPrefix(fmt.Sprint(r), "freehold: "):
			t.Fatalf("%s panicked with %q, which does not begin with %q", name, fmt.Sprint(r), "freehold: ")
		}
	}()
	call()
}

// checkOutOfMemory: impossible sizes are errors and change nothing.
func checkOutOfMemory(t testing.TB, a freehold.Allocator, o Options) {
	s := &shelf{t: t, a: a}
	for range 8 {
		s.add(must(t, a, o, 24, 8))
	}
	huge := []struct {
		size uint64
		why  string
	}{
		{math.MaxInt, "any rounding up overflows"},
		{math.MaxInt - 15, "rounding up to 16 does not, to a page does"},
		{math.MaxInt - 1<<16, "rounding up does not, adding a header might"},
		{1 << 62, "a power of two"},
		{1<<62 + 1, "rounding up to a power of two overflows"},
		{1 << 48, "all of the address space, and it fits a table of pages"},
	}
	for _, c := range huge {
		if c.size > math.MaxInt {
			continue // on 32 bits
		}
		size := int(c.size)
		for _, align := range []int{1, 8, 4096} {
			refused := func(call string, b []byte, err error) {
				t.Helper()
				if !errors.Is(err, freehold.ErrOutOfMemory) || b != nil {
					t.Fatalf("%s of %d bytes (%s): %d bytes and error %v; want nil and ErrOutOfMemory", call, size, c.why, len(b), err)
				}
			}
			b, err := a.Alloc(size, align)
			refused("Alloc", b, err)
			b, err = a.Zeroed(size, align)
			refused("Zeroed", b, err)
			if r, ok := a.Resize(s.blocks[0].b, size); ok {
				t.Fatalf("Resize to %d bytes (%s) gave %d", size, c.why, len(r))
			}
			b, err = freehold.Realloc(a, s.blocks[0].b, size, 8)
			refused("Realloc", b, err)
			s.check("after " + c.why)
		}
	}
	for _, align := range []int{1 << 30, math.MaxInt/2 + 1} {
		b, err := a.Alloc(8, align)
		if err == nil {
			if fault := blockFault(b, 8, align); fault != "" {
				t.Fatalf("Alloc(8, %d): %s", align, fault)
			}
			a.Free(b)
		} else if !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Fatalf("Alloc(8, %d): %v", align, err)
		}
	}
	for range 8 {
		s.add(must(t, a, o, 24, 8))
	}
	s.clear("at the end")
}

// checkOwner: an Owner owns its own blocks and no other memory.
func checkOwner(t testing.TB, a freehold.Allocator, o Options) {
	owner, ok := a.(freehold.Owner)
	if !ok {
		t.Skip("not an Owner")
	}
	if owner.Owns(nil) || owner.Owns([]byte{}) {
		t.Fatal("owns an empty slice")
	}
	if owner.Owns(make([]byte, 64)) {
		t.Fatal("owns a slice on the Go heap")
	}
	var local [64]byte
	if owner.Owns(local[:]) {
		t.Fatal("owns a local variable")
	}
	canTell := false
	for _, c := range sizes {
		b := must(t, a, o, c.size, 1)
		canTell = canTell || owner.Owns(b)
		a.Free(b)
	}
	if !canTell {
		t.Skip("owns none of its blocks")
	}
	for _, c := range sizes {
		b := must(t, a, o, c.size, 1)
		if b == nil {
			continue
		}
		if !owner.Owns(b) {
			t.Fatalf("does not own its block of %d bytes (%s)", c.size, c.why)
		}
		if !owner.Owns(b[c.size-1:]) {
			t.Fatalf("does not own the last byte of its block of %d bytes (%s)", c.size, c.why)
		}
		if owner.Owns(b[:0]) {
			t.Fatal("owns an empty part of a block")
		}
		a.Free(b)
	}
}

// checkMistakes: a mistake in Options.Detects panics and does no harm.
func checkMistakes(t testing.TB, a freehold.Allocator, o Options) {
	if o.Detects == 0 {
		t.Skip("detects no mistakes")
	}
	s := &shelf{t: t, a: a}
	for _, c := range sizes {
		if c.size > o.MaxSize {
			continue
		}
		for range 3 {
			s.add(must(t, a, o, c.size, 1))
		}
		b := s.blocks[1].b
		if o.Detects&ForeignFree != 0 {
			foreign := make([]byte, c.size)
			mustPanic(t, fmt.Sprintf("Free of %d bytes of Go memory", c.size), func() { a.Free(foreign) })
		}
		if o.Detects&InteriorFree != 0 {
			for _, from := range []int{1, 8, 16, c.size / 2, c.size - 1} {
				if from > 0 && from < c.size {
					mustPanic(t, fmt.Sprintf("Free of a block of %d bytes from byte %d on", c.size, from), func() { a.Free(b[from:]) })
				}
			}
		}
		if o.Detects&ShortFree != 0 {
			for _, to := range []int{1, c.size / 2, c.size - 1} {
				if to > 0 && to < c.size {
					mustPanic(t, fmt.Sprintf("Free of the first %d bytes of a block of %d", to, c.size), func() { a.Free(b[:to:to]) })
				}
			}
		}
		s.check("after the mistakes")
		if o.Detects&DoubleFree != 0 {
			d := must(t, a, o, c.size, 1)
			a.Free(d)
			mustPanic(t, fmt.Sprintf("a second Free of a block of %d bytes", c.size), func() { a.Free(d) })
			// If it had been freed twice, it would be allocated twice.
			for range 3 {
				s.add(must(t, a, o, c.size, 1))
			}
		}
		s.clear(fmt.Sprintf("after mistakes with blocks of %d bytes", c.size))
	}
}
