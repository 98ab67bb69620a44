package freehold_test

import (
	"errors"
	"math"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
)

func TestLimitConforms(t *testing.T) {
	alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
		limit := freehold.NewLimit(alloctest.New(t), 1<<30)
		t.Cleanup(func() {
			if limit.Used() != 0 {
				t.Errorf("%d bytes in use when all are freed", limit.Used())
			}
		})
		return limit
	}, &alloctest.Options{Concurrent: true, Detects: alloctest.AllMistakes})
}

func TestLimitCountsExactly(t *testing.T) {
	limit := freehold.NewLimit(newRoomy(t), 1000)
	used := func(want int, after string) {
		t.Helper()
		if limit.Used() != want {
			t.Errorf("%s: %d bytes in use, want %d", after, limit.Used(), want)
		}
	}
	if limit.MaxBytes() != 1000 {
		t.Errorf("MaxBytes %d", limit.MaxBytes())
	}
	used(0, "at first")
	b := freehold.Must(limit.Alloc(100, 8))
	used(100, "after Alloc")
	c := freehold.Must(limit.Zeroed(900, 8))
	used(1000, "after Zeroed of all the rest")
	if _, err := limit.Alloc(1, 1); err == nil || err.Error() != "freehold: out of memory: 1 byte more would exceed the limit of 1000" || !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Errorf("Alloc of one more: %v", err)
	}
	if _, err := limit.Zeroed(math.MaxInt, 1); !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Errorf("Zeroed of all: %v", err)
	}
	used(1000, "after two refusals")
	if b, err := limit.Alloc(0, 1); err != nil || b == nil {
		t.Errorf("an empty block at the limit: %v", err)
	}
	if _, ok := limit.Resize(b, 101); ok {
		t.Error("Resize to one more")
	}
	used(1000, "after the refusal")
	c, ok := limit.Resize(c, 800)
	if !ok {
		t.Fatal("cannot shrink")
	}
	used(900, "after shrinking by 100")
	if b, ok = limit.Resize(b, 200); !ok {
		t.Fatal("cannot grow within the limit")
	}
	used(1000, "after growing by 100")
	if _, ok = limit.Resize(b, math.MaxInt); ok {
		t.Error("Resize to all")
	}
	limit.Free(nil)
	used(1000, "after Free of nil")
	limit.Free(b)
	used(800, "after Free")
	limit.Free(freehold.Must(freehold.Realloc(limit, c, 0, 8)))
	used(0, "after Realloc to 0")
	if r, ok := limit.Resize(nil, 10); ok {
		t.Errorf("Resize of nil: %d bytes", len(r))
	}
	used(0, "after Resize of nil")
}

// TestLimitAfterFailuresOfNext: if next fails or panics, an allocation does not
// count, and a block that was to be freed still does.
func TestLimitAfterFailuresOfNext(t *testing.T) {
	next := alloctest.New(t)
	limit := freehold.NewLimit(alloctest.FailAfter(next, 1), 1000)
	b := freehold.Must(limit.Alloc(100, 8))
	calls := []struct {
		name string
		call func()
	}{
		{"Alloc fails", func() { limit.Alloc(10, 8) }},
		{"Zeroed fails", func() { limit.Zeroed(10, 8) }},
		{"Resize fails", func() { limit.Resize(b, 200) }},
		{"Alloc panics at the alignment", func() { limit.Alloc(10, 3) }},
		{"Alloc panics at the size", func() { limit.Alloc(-10, 8) }},
		{"Alloc panics at the least size", func() { limit.Alloc(math.MinInt, 8) }},
		{"Zeroed panics", func() { limit.Zeroed(-10, 8) }},
		{"Resize panics at the size", func() { limit.Resize(b, -1) }},
		{"growing panics at the block", func() { limit.Resize(b[:99], 200) }},
		{"shrinking panics at the block", func() { limit.Resize(b[:99], 50) }},
		{"Free panics", func() { limit.Free(b[:50]) }},
		{"Free of Go memory panics", func() { limit.Free(make([]byte, 50)) }},
	}
	for _, c := range calls {
		message := panics.Of(c.call)
		if limit.Used() != 100 {
			t.Fatalf("%s: %d bytes in use, want 100 (panic %q)", c.name, limit.Used(), message)
		}
	}
	limit.Free(b)
}

func TestNewLimitOfNegativeSize(t *testing.T) {
	wantPanic(t, "freehold: NewLimit: maxBytes -1, want 0 or more", func() { freehold.NewLimit(newSlot(), -1) })
	if _, err := freehold.NewLimit(newSlot(), 0).Alloc(1, 1); !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Errorf("Alloc with a limit of 0: %v", err)
	}
}

// A wrong alignment panics even if the block would be refused.
func TestLimitPanicsForAWrongAlignmentFirst(t *testing.T) {
	l := freehold.NewLimit(alloctest.New(t), 0)
	wantPanic(t, "freehold: Limit.Alloc: alignment 3, want a power of two", func() { l.Alloc(8, 3) })
	wantPanic(t, "freehold: Limit.Zeroed: alignment 0, want a power of two", func() { l.Zeroed(8, 0) })
	if _, err := l.Alloc(8, 8); !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Error(err)
	}
}

func BenchmarkWrappers(b *testing.B) {
	slot := newSlot()
	for _, c := range []struct {
		name string
		a    freehold.Allocator
	}{
		{"none", slot},
		{"limit", freehold.NewLimit(slot, 1<<30)},
		{"tagged", freehold.NewTagged(slot, "slot")},
		{"fallback", freehold.NewFallback(slot, newSlot())},
		{"locked", freehold.NewLocked(slot)},
	} {
		b.Run("wrapper="+c.name, func(b *testing.B) {
			for b.Loop() {
				m, err := c.a.Alloc(64, 8)
				if err != nil {
					b.Fatal(err)
				}
				c.a.Free(m)
			}
		})
	}
}
