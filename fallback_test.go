package freehold_test

import (
	"errors"
	"math"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/pool"
)

func TestFallbackConforms(t *testing.T) {
	tests := []struct {
		why   string
		first func(t *testing.T) freehold.Owner
	}{
		{"first has some", func(t *testing.T) freehold.Owner { return freehold.NewLimit(alloctest.New(t), 100_000) }},
		{"first and then a second", func(t *testing.T) freehold.Owner {
			return freehold.NewFallback(freehold.NewLimit(alloctest.New(t), 5_000), freehold.NewLimit(alloctest.New(t), 500_000))
		}},
	}
	for _, c := range tests {
		t.Run(c.why, func(t *testing.T) {
			alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
				return freehold.NewFallback(c.first(t), alloctest.New(t))
			}, &alloctest.Options{Concurrent: true, Detects: alloctest.AllMistakes})
		})
	}
}

func TestFallbackRoutes(t *testing.T) {
	first, rest := freehold.NewLimit(newRoomy(t), 100), freehold.NewLimit(newRoomy(t), 1000)
	a := freehold.NewFallback(first, rest)
	used := func(wantFirst, wantRest int, after string) {
		t.Helper()
		if first.Used() != wantFirst || rest.Used() != wantRest {
			t.Errorf("%s: %d and %d bytes in use, want %d and %d", after, first.Used(), rest.Used(), wantFirst, wantRest)
		}
	}
	b := freehold.Must(a.Alloc(60, 8))
	used(60, 0, "Alloc")
	c := freehold.Must(a.Alloc(60, 8))
	used(60, 60, "Alloc past the first's limit")
	d := freehold.Must(a.Zeroed(40, 8))
	used(100, 60, "Zeroed of what the first still has")
	e := freehold.Must(a.Zeroed(1, 8))
	used(100, 61, "Zeroed of one more")
	c, ok := a.Resize(c, 160)
	if !ok {
		t.Fatal("the rest cannot grow")
	}
	used(100, 161, "Resize of the rest's")
	if _, ok = a.Resize(b, 61); ok {
		t.Error("Resize of the first's past its limit")
	}
	b[59] = 'b'
	b = freehold.Must(freehold.Realloc(a, b, 61, 8))
	if b[59] != 'b' {
		t.Errorf("Realloc across: %q", b)
	}
	used(40, 222, "Realloc across")
	if _, err := a.Alloc(1000, 8); err == nil || err.Error() != "freehold: out of memory: 1000 bytes more would exceed the limit of 1000" || !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Errorf("error %v, want the rest's", err)
	}
	a.Free(b)
	a.Free(c)
	used(40, 1, "Free")
	a.Free(d)
	a.Free(e)
	used(0, 0, "Free of all")
	a.Free(nil)
}

func TestFallbackOwns(t *testing.T) {
	first, rest := freehold.NewLimit(alloctest.New(t), 10), alloctest.New(t)
	a := freehold.NewFallback(first, rest)
	for range 2 {
		b := freehold.Must(a.Alloc(10, 1))
		defer a.Free(b)
		if !a.Owns(b) {
			t.Error("does not own its block")
		}
	}
	if a.Owns(make([]byte, 10)) || a.Owns(nil) {
		t.Error("owns what it did not hand out")
	}
	half := freehold.NewFallback(freehold.NewLimit(alloctest.New(t), 10), plain{rest})
	b, c := freehold.Must(half.Alloc(10, 1)), freehold.Must(half.Alloc(10, 1))
	if !half.Owns(b) || half.Owns(c) {
		t.Error("with a rest that is no Owner: owns other blocks than first's")
	}
	half.Free(b)
	half.Free(c)
}

func TestFallbackRefusesAFirstThatCannotTell(t *testing.T) {
	blind := plain{newSlot()}
	for kind, first := range map[string]freehold.Owner{
		"*freehold.Limit":    freehold.NewLimit(blind, 10),
		"*freehold.locked":   freehold.NewLocked(freehold.NewTagged(blind, "")),
		"*freehold.Tagged":   freehold.NewTagged(freehold.NewTagged(blind, "a"), "b"),
		"*freehold.fallback": freehold.NewFallback(newSlot(), freehold.NewLocked(blind)),
		"*freehold.Scope":    freehold.NewScope(freehold.NewScope(blind)),
	} {
		wantPanic(t, "freehold: NewFallback: first, a "+kind+", cannot tell its blocks: it is around a freehold_test.plain, which is no Owner", func() {
			freehold.NewFallback(first, newSlot())
		})
	}
	freehold.NewFallback(freehold.NewLimit(freehold.NewFallback(newSlot(), newSlot()), 10), blind)
}

// Wrappers that no constructor made have no allocator to call.
func TestZeroWrappersPanic(t *testing.T) {
	b := make([]byte, 8)
	for _, a := range []freehold.Allocator{new(freehold.Limit), new(freehold.Tagged)} {
		for call, f := range map[string]func(){
			"Alloc":        func() { a.Alloc(8, 8) },
			"Alloc of 0":   func() { a.Alloc(0, 8) },
			"Zeroed":       func() { a.Zeroed(8, 8) },
			"Free":         func() { a.Free(b) },
			"Free of nil":  func() { a.Free(nil) },
			"Resize":       func() { a.Resize(b, 4) },
			"second Alloc": func() { a.Alloc(8, 8) }, // no lock is held
		} {
			if panics.Of(f) == "" {
				t.Errorf("%T: %s does not panic", a, call)
			}
		}
	}
	wantPanic(t, "freehold: Limit.Alloc: zero value: NewLimit makes a Limit", func() { new(freehold.Limit).Alloc(8, 8) })
	wantPanic(t, "freehold: Limit.Zeroed: zero value: NewLimit makes a Limit", func() { new(freehold.Limit).Zeroed(8, 8) })
}

// valued is an Allocator that cannot be compared.
type valued struct {
	freehold.Owner
	_ []int
}

func TestFallbackWithinOneAllocatorPanics(t *testing.T) {
	h, other := freehold.NewHeap(nil), freehold.NewHeap(nil)
	defer h.Close()
	defer other.Close()
	limit := freehold.NewLimit(h, 1000)
	both := freehold.NewFallback(other, limit)
	for name, tt := range map[string]struct {
		first freehold.Owner
		rest  freehold.Allocator
	}{
		"a heap twice":            {h, h},
		"a wrapper and its heap":  {limit, h},
		"two wrappers":            {freehold.NewLocked(limit), freehold.NewTagged(h, "")},
		"first of a Fallback":     {other, both},
		"rest of a Fallback":      {h, both},
		"a Fallback as the first": {both, h},
	} {
		if got, want := panics.Of(func() { freehold.NewFallback(tt.first, tt.rest) }), "freehold: NewFallback: first would own the blocks of rest: both allocate from one *freehold.Heap"; got != want {
			t.Errorf("%s: panic %q, want %q", name, got, want)
		}
	}
	freehold.NewFallback(limit, other)
	freehold.NewFallback(pool.NewBlocks(h, 8, 8, nil), h)
	freehold.NewFallback(valued{Owner: h}, valued{Owner: other})
}

// GoodSize of a Fallback comes from the first allocator with a block of the size.
func TestGoodSizeThroughTiers(t *testing.T) {
	h := freehold.NewHeap(nil)
	defer h.Close()
	small, middle := pool.NewBlocks(h, 16, 8, nil), pool.NewBlocks(h, 256, 8, nil)
	defer small.Close()
	defer middle.Close()
	limited := freehold.NewLimit(freehold.NewTagged(freehold.NewLocked(freehold.NewScope(small)), ""), 1000)
	tiers := freehold.NewFallback(limited, freehold.NewFallback(middle, h))
	for size, want := range map[int]int{
		1: 16, 16: 16, 17: 256, 256: 256, 257: h.GoodSize(257), 300: h.GoodSize(300), 100_000: h.GoodSize(100_000),
	} {
		if got := freehold.GoodSize(tiers, size); got != want {
			t.Errorf("GoodSize of %d is %d, want %d", size, got, want)
		}
	}
	if got := limited.GoodSize(17); got != 0 {
		t.Errorf("a pool of 16 bytes has a block of 17, of %d bytes", got)
	}
	for _, a := range []freehold.Allocator{h, small, limited, tiers, newSlot(), freehold.NewLimit(newSlot(), 10)} {
		for _, size := range []int{0, -1, math.MinInt} {
			if got := freehold.GoodSize(a, size); got != 0 {
				t.Errorf("%T: GoodSize of %d is %d, want 0", a, size, got)
			}
		}
	}
	for _, a := range []freehold.Allocator{small, freehold.NewLimit(newSlot(), 10)} {
		if got := freehold.GoodSize(a, 17); got != 17 {
			t.Errorf("%T: GoodSize of 17 is %d, want 17", a, got)
		}
	}
}
