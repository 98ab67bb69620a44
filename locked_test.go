package freehold_test

import (
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

func TestLockedConforms(t *testing.T) {
	alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
		return freehold.NewLocked(alloctest.New(t))
	}, &alloctest.Options{Concurrent: true, Detects: alloctest.AllMistakes})
}

// TestWrappersConformTogether uses an order that users are likely to choose.
func TestWrappersConformTogether(t *testing.T) {
	alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
		small := freehold.NewLimit(alloctest.New(t), 1<<20)
		counter := freehold.NewTagged(freehold.NewFallback(small, alloctest.New(t)), "")
		t.Cleanup(func() {
			if c := counter.Counts(); c.LiveBytes != 0 || c.Live != 0 || small.Used() != 0 {
				t.Errorf("when all are freed: %+v, and %d bytes of the first", c, small.Used())
			}
		})
		return freehold.NewLocked(counter)
	}, &alloctest.Options{Concurrent: true, Detects: alloctest.AllMistakes})
}

// FuzzWrappers runs programs on all wrappers combined, with limits that are reached.
func FuzzWrappers(f *testing.F) {
	f.Add([]byte{0x30, 0, 32, 0, 0x0F, 0, 0, 0})
	f.Add([]byte{0xC6, 0, 0xFF, 0xFF, 0x0A, 0, 0x43, 0, 0x00, 0, 0x42, 0xF0})
	f.Fuzz(func(t *testing.T, prog []byte) {
		small := freehold.NewLimit(mover{alloctest.New(t)}, 10_000)
		large := freehold.NewLimit(newRoomy(t), 4<<20)
		counter := freehold.NewTagged(freehold.NewFallback(small, large), "")
		alloctest.RunProgram(t, freehold.NewLocked(counter), prog)
		if c := counter.Counts(); c.LiveBytes != 0 || c.Live != 0 || small.Used() != 0 || large.Used() != 0 {
			t.Errorf("when all are freed: %+v, %d and %d bytes", c, small.Used(), large.Used())
		}
	})
}

func TestLockedUnlocksWhenNextPanics(t *testing.T) {
	a := freehold.NewLocked(alloctest.New(t))
	b := freehold.Must(a.Alloc(8, 8))
	for _, call := range []func(){
		func() { a.Alloc(-1, 8) },
		func() { a.Zeroed(8, 3) },
		func() { a.Resize(b, -1) },
		func() { a.Free(b[:1]) },
	} {
		wantPanic(t, "freehold: ...", call)
		if !a.Owns(b) { // which needs the lock
			t.Error("does not own its block")
		}
	}
	a.Free(b)
}

func TestWrappersOwnWhatNextOwns(t *testing.T) {
	for _, wrap := range []func(next freehold.Allocator) freehold.Owner{
		func(next freehold.Allocator) freehold.Owner { return freehold.NewLimit(next, 100) },
		func(next freehold.Allocator) freehold.Owner { return freehold.NewLocked(next) },
		func(next freehold.Allocator) freehold.Owner { return freehold.NewTagged(next, "") },
	} {
		for _, next := range []freehold.Allocator{alloctest.New(t), plain{newSlot()}} {
			a := wrap(next)
			b := freehold.Must(a.Alloc(10, 1))
			if _, want := next.(freehold.Owner); a.Owns(b) != want || a.Owns(make([]byte, 10)) || a.Owns(nil) {
				t.Errorf("a %T around a %T owns other blocks than that", a, next)
			}
			a.Free(b)
		}
	}
}

func TestWrappersAroundNothingAreRefused(t *testing.T) {
	wantPanic(t, "freehold: NewLimit: next is nil", func() { freehold.NewLimit(nil, 100) })
	wantPanic(t, "freehold: NewTagged: next is nil", func() { freehold.NewTagged(nil, "tag") })
	wantPanic(t, "freehold: NewLocked: next is nil", func() { freehold.NewLocked(nil) })
	wantPanic(t, "freehold: NewFallback: first is nil", func() { freehold.NewFallback(nil, newSlot()) })
	wantPanic(t, "freehold: NewFallback: rest is nil", func() { freehold.NewFallback(newSlot(), nil) })
}
