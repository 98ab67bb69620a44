package freehold_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
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
	if _, err := limit.Alloc(1, 1); err == nil || err.Error() != "freehold: out of memory: 1 byte would exceed the limit of 1000" || !errors.Is(err, freehold.ErrOutOfMemory) {
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

func TestLimitCountsAResizeTo0AsFree(t *testing.T) {
	limit := freehold.NewLimit(alloctest.New(t), 100) // whose Resize does it
	b := freehold.Must(limit.Alloc(100, 8))
	if _, ok := limit.Resize(b, 0); !ok || limit.Used() != 0 {
		t.Errorf("%t, %d bytes in use", ok, limit.Used())
	}
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

func TestLimitOwnsWhatNextOwns(t *testing.T) {
	limit := freehold.NewLimit(alloctest.New(t), 100)
	b := freehold.Must(limit.Alloc(10, 1))
	if !limit.Owns(b) || limit.Owns(make([]byte, 10)) {
		t.Error("Owns is not next's")
	}
	limit.Free(b)
}

// gauge records the peak of its live bytes.
type gauge struct {
	freehold.Allocator
	live, most atomic.Int64
}

func (g *gauge) Alloc(size, align int) ([]byte, error) {
	live := g.live.Add(int64(size))
	for most := g.most.Load(); live > most && !g.most.CompareAndSwap(most, live); most = g.most.Load() {
	}
	return g.Allocator.Alloc(size, align)
}

func (g *gauge) Resize(b []byte, size int) ([]byte, bool) {
	r, ok := g.Allocator.Resize(b, size)
	if ok {
		g.live.Add(int64(size - len(b))) // the test only shrinks
	}
	return r, ok
}

func (g *gauge) Free(b []byte) {
	g.live.Add(-int64(len(b)))
	g.Allocator.Free(b)
}

// TestLimitIsNeverPassed: and requests that fit never fail because of others that
// do not.
func TestLimitIsNeverPassed(t *testing.T) {
	const workers, share = 4, 1000
	g := &gauge{Allocator: alloctest.New(t)}
	limit := freehold.NewLimit(g, workers*share)
	var stop atomic.Bool
	var greedy, modest sync.WaitGroup
	for range 2 {
		greedy.Go(func() {
			for !stop.Load() {
				if b, err := limit.Alloc(workers*share+1, 1); err == nil {
					t.Errorf("%d bytes", len(b))
				}
				runtime.Gosched()
			}
		})
	}
	for w := range workers {
		r := rand.New(rand.NewPCG(1, uint64(w)))
		modest.Go(func() {
			for range 2000 {
				b, err := limit.Alloc(share, 1) // all workers together use the whole limit
				if err != nil {
					t.Errorf("a request that fits: %v", err)
					return
				}
				if r.IntN(2) == 0 {
					if b, err = freehold.Realloc(limit, b, 1+r.IntN(share), 1); err != nil {
						t.Errorf("shrinking: %v", err)
						return
					}
				}
				limit.Free(b)
			}
		})
	}
	modest.Wait()
	stop.Store(true)
	greedy.Wait()
	if most := g.most.Load(); most > workers*share || limit.Used() != 0 {
		t.Errorf("up to %d bytes live with a limit of %d; %d at the end", most, workers*share, limit.Used())
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

// The Free of a foreign block does not raise a Limit.
func TestForeignFreeDoesNotRaiseALimit(t *testing.T) {
	h := freehold.NewHeap(nil)
	defer h.Close()
	l := freehold.NewLimit(h, 1000)
	b := freehold.Must(h.Alloc(500, 8))
	wantPanic(t, "freehold: Limit.Free: 500 bytes, more than this Limit has handed out: a double free, or a block from elsewhere", func() { l.Free(b) })
	if _, err := l.Alloc(1001, 8); !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Errorf("the limit was passed: %v", err)
	}
}
