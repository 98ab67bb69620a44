package freehold_test

import (
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// lonely is not safe for concurrent use: two calls at once are a data race, and
// mostly one of them finds the other busy.
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
		return freehold.Locked(&lonely{Allocator: alloctest.New(t), t: t})
	}, &alloctest.Options{Concurrent: true, Detects: alloctest.AnyMistake})
}

// TestWrappersConformTogether, in an order that users may well choose.
func TestWrappersConformTogether(t *testing.T) {
	alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
		small := freehold.NewLimit(&lonely{Allocator: alloctest.New(t), t: t}, 1<<20)
		counter := freehold.NewCounter(freehold.Fallback(small, &lonely{Allocator: alloctest.New(t), t: t}))
		t.Cleanup(func() {
			if c := counter.Counts(); c.LiveBytes != 0 || c.Live != 0 || small.Used() != 0 {
				t.Errorf("when all are freed: %+v, and %d bytes of the first", c, small.Used())
			}
		})
		return freehold.Locked(counter)
	}, &alloctest.Options{Concurrent: true, Detects: alloctest.AnyMistake})
}

// FuzzWrappers runs programs on all wrappers at once, with limits that are met.
func FuzzWrappers(f *testing.F) {
	f.Add([]byte{0x30, 0, 32, 0, 0x0F, 0, 0, 0})
	f.Add([]byte{0xC6, 0, 0xFF, 0xFF, 0x0A, 0, 0x43, 0, 0x00, 0, 0x42, 0xF0})
	f.Fuzz(func(t *testing.T, prog []byte) {
		small := freehold.NewLimit(mover{alloctest.New(t)}, 10_000)
		large := freehold.NewLimit(newRoomy(t), 4<<20)
		counter := freehold.NewCounter(freehold.Fallback(small, large))
		alloctest.Run(t, freehold.Locked(counter), prog)
		if c := counter.Counts(); c.LiveBytes != 0 || c.Live != 0 || small.Used() != 0 || large.Used() != 0 {
			t.Errorf("when all are freed: %+v, %d and %d bytes", c, small.Used(), large.Used())
		}
	})
}

func TestLockedUnlocksWhenNextPanics(t *testing.T) {
	a := freehold.Locked(alloctest.New(t)).(freehold.Owner)
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

func TestLockedIsAnOwnerIfNextIs(t *testing.T) {
	if _, ok := freehold.Locked(plain{alloctest.New(t)}).(freehold.Owner); ok {
		t.Error("Locked of no Owner is one")
	}
	if _, ok := freehold.Locked(alloctest.New(t)).(freehold.Owner); !ok {
		t.Error("Locked of an Owner is none")
	}
}
