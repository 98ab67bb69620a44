package freehold_test

import (
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// lonely is not safe for concurrent use: two calls at once are a data race, and
// usually one of them detects the other.
type lonely struct {
	*alloctest.Allocator
	t     testing.TB
	calls int
	busy  bool
}

func (l *lonely) enter() func() {
	if l.busy {
		l.t.Error("two calls at once")
	}
	l.busy = true
	l.calls++
	return func() { l.busy = false }
}

func (l *lonely) Alloc(size, align int) ([]byte, error) {
	defer l.enter()()
	return l.Allocator.Alloc(size, align)
}

func (l *lonely) Zeroed(size, align int) ([]byte, error) {
	defer l.enter()()
	return l.Allocator.Zeroed(size, align)
}

func (l *lonely) Resize(b []byte, size int) ([]byte, bool) {
	defer l.enter()()
	return l.Allocator.Resize(b, size)
}

func (l *lonely) Free(b []byte) {
	defer l.enter()()
	l.Allocator.Free(b)
}

func (l *lonely) Owns(b []byte) bool {
	defer l.enter()()
	return l.Allocator.Owns(b)
}

func (l *lonely) GoodSize(size int) int {
	defer l.enter()()
	return size
}

func TestLockedConforms(t *testing.T) {
	alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
		return freehold.NewLocked(&lonely{Allocator: alloctest.New(t), t: t})
	}, &alloctest.Options{Concurrent: true, Detects: alloctest.AllMistakes})
}

// TestWrappersConformTogether uses an order that users are likely to choose.
func TestWrappersConformTogether(t *testing.T) {
	alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
		small := freehold.NewLimit(&lonely{Allocator: alloctest.New(t), t: t}, 1<<20)
		counter := freehold.NewTagged(freehold.NewFallback(small, &lonely{Allocator: alloctest.New(t), t: t}), "")
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

func TestLockedOwnsWhatNextOwns(t *testing.T) {
	a := freehold.NewLocked(alloctest.New(t))
	b := freehold.Must(a.Alloc(10, 1))
	if !a.Owns(b) || a.Owns(make([]byte, 10)) {
		t.Error("Owns is not next's")
	}
	a.Free(b)
}

func TestWrappersAroundNoOwnerOwnNothing(t *testing.T) {
	blind := plain{newSlot()}
	for _, a := range []freehold.Owner{freehold.NewLimit(blind, 100), freehold.NewLocked(blind), freehold.NewTagged(blind, "blind")} {
		b := freehold.Must(a.Alloc(10, 1))
		if a.Owns(b) || a.Owns(nil) {
			t.Errorf("a %T owns a block", a)
		}
		a.Free(b)
	}
}

func TestWrappersAroundNothingAreRefused(t *testing.T) {
	wantPanic(t, "freehold: NewLimit: next is nil", func() { freehold.NewLimit(nil, 100) })
	wantPanic(t, "freehold: NewTagged: next is nil", func() { freehold.NewTagged(nil, "tag") })
	wantPanic(t, "freehold: NewLocked: next is nil", func() { freehold.NewLocked(nil) })
	wantPanic(t, "freehold: NewFallback: first is nil", func() { freehold.NewFallback(nil, newSlot()) })
	wantPanic(t, "freehold: NewFallback: rest is nil", func() { freehold.NewFallback(newSlot(), nil) })
}
