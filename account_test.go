package freehold_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
)

func TestTaggedCountsExactly(t *testing.T) {
	counter := freehold.NewTagged(newRoomy(t), "")
	var b, c []byte
	steps := []struct {
		name string
		call func()
		want freehold.Counts
	}{
		{"at first", func() {}, freehold.Counts{}},
		{"Alloc", func() { b = freehold.Must(counter.Alloc(100, 8)) }, freehold.Counts{Live: 1, LiveBytes: 100, PeakBytes: 100, Allocs: 1}},
		{"Zeroed", func() { c = freehold.Must(counter.Zeroed(50, 8)) }, freehold.Counts{Live: 2, LiveBytes: 150, PeakBytes: 150, Allocs: 2}},
		{"an empty block", func() { counter.Free(freehold.Must(counter.Alloc(0, 8))) }, freehold.Counts{Live: 2, LiveBytes: 150, PeakBytes: 150, Allocs: 2}},
		{"shrinking", func() { b, _ = counter.Resize(b, 60) }, freehold.Counts{Live: 2, LiveBytes: 110, PeakBytes: 150, Allocs: 2}},
		{"growing", func() { b, _ = counter.Resize(b, 70) }, freehold.Counts{Live: 2, LiveBytes: 120, PeakBytes: 150, Allocs: 2}},
		{"growing past the peak", func() { b, _ = counter.Resize(b, 200) }, freehold.Counts{Live: 2, LiveBytes: 250, PeakBytes: 250, Allocs: 2}},
		{"Resize that fails", func() { counter.Resize(b, 1<<20) }, freehold.Counts{Live: 2, LiveBytes: 250, PeakBytes: 250, Allocs: 2}},
		{"Resize to the same size", func() { b, _ = counter.Resize(b, 200) }, freehold.Counts{Live: 2, LiveBytes: 250, PeakBytes: 250, Allocs: 2}},
		{"Alloc that fails", func() { counter.Alloc(1<<30, 8) }, freehold.Counts{Live: 2, LiveBytes: 250, PeakBytes: 250, Allocs: 2}},
		{"Alloc that panics", func() { panics.Of(func() { counter.Alloc(8, 3) }) }, freehold.Counts{Live: 2, LiveBytes: 250, PeakBytes: 250, Allocs: 2}},
		{"Resize that panics", func() { panics.Of(func() { counter.Resize(b, -1) }) }, freehold.Counts{Live: 2, LiveBytes: 250, PeakBytes: 250, Allocs: 2}},
		{"Free that panics", func() { panics.Of(func() { counter.Free(make([]byte, 9)) }) }, freehold.Counts{Live: 2, LiveBytes: 250, PeakBytes: 250, Allocs: 2}},
		{"Free", func() { counter.Free(c) }, freehold.Counts{Live: 1, LiveBytes: 200, PeakBytes: 250, Allocs: 2, Frees: 1}},
		{"Free of nil", func() { counter.Free(nil) }, freehold.Counts{Live: 1, LiveBytes: 200, PeakBytes: 250, Allocs: 2, Frees: 1}},
		{"Realloc to 0", func() { freehold.Must(freehold.Realloc(counter, b, 0, 8)) }, freehold.Counts{PeakBytes: 250, Allocs: 2, Frees: 2}},
	}
	for _, s := range steps {
		s.call()
		if got := counter.Counts(); got != s.want {
			t.Errorf("%s: %+v, want %+v", s.name, got, s.want)
		}
	}
}

// A Tagged does not count the Free of a foreign block.
func TestForeignFreeDoesNotLowerTheCounts(t *testing.T) {
	next := newSlot()
	c := freehold.NewTagged(next, "")
	b := freehold.Must(c.Alloc(100, 8))
	before := c.Counts()
	wantPanic(t, "freehold: Tagged.Free: 101 bytes, more than this Tagged has handed out: a double free, or a block from elsewhere", func() { c.Free(make([]byte, 101)) })
	wantPanic(t, "freehold: Tagged.Resize: 200 bytes, more than this Tagged has handed out: a double free, or a block from elsewhere", func() { c.Resize(make([]byte, 200), 50) })
	if got := c.Counts(); got != before {
		t.Errorf("%+v, want %+v", got, before)
	}
	c.Free(b[:40])
	before = c.Counts()
	wantPanic(t, "freehold: Tagged.Free: more blocks than this Tagged has handed out: a double free, or a block from elsewhere", func() { c.Free(b[:40]) })
	if got := c.Counts(); got != before || got.Live != 0 || got.LiveBytes != 60 {
		t.Errorf("%+v, want %+v", got, before)
	}
}

// A foreign block is refused before next frees it.
func TestForeignBlocksAreNotFreedThroughAWrapper(t *testing.T) {
	h := freehold.NewHeap(nil)
	defer h.Close()
	b := freehold.Must(h.Alloc(64, 8))
	limit, counter := freehold.NewLimit(h, 100), freehold.NewTagged(h, "")
	own := freehold.Must(counter.Alloc(40, 8))
	defer counter.Free(own)
	wantPanic(t, "freehold: Limit.Free: 64 bytes, more than this Limit has handed out: a double free, or a block from elsewhere", func() { limit.Free(b) })
	wantPanic(t, "freehold: Limit.Resize: 1 byte, more than this Limit has handed out: a double free, or a block from elsewhere", func() { limit.Resize(b, 63) })
	wantPanic(t, "freehold: Tagged.Free: 64 bytes, more than this Tagged has handed out: a double free, or a block from elsewhere", func() { counter.Free(b) })
	wantPanic(t, "freehold: Tagged.Resize: 64 bytes, more than this Tagged has handed out: a double free, or a block from elsewhere", func() { counter.Resize(b, 8) })
	h.Free(b) // live, at its size
	if n := h.Live(); n != 1 {
		t.Errorf("%d blocks are live", n)
	}
}

// during calls f once, in the first Free.
type during struct {
	freehold.Allocator
	f func()
}

func (d *during) Free(b []byte) {
	f := d.f
	d.f = func() {}
	f()
	d.Allocator.Free(b)
}

// Two calls free more than is live at the same moment: the later one panics and counts
// nothing.
func TestForeignBlocksThatAreFreedAtOnceAreNotCounted(t *testing.T) {
	next := &during{Allocator: newSlot(), f: func() {}}
	limit := freehold.NewLimit(next, 100)
	b := freehold.Must(limit.Alloc(100, 8))
	next.f = func() { limit.Free(b) }
	wantPanic(t, "freehold: Limit.Free: 30 bytes, more than this Limit has handed out: a double free, or a block from elsewhere", func() { limit.Free(b[:30:30]) })
	if n := limit.Used(); n != 0 {
		t.Errorf("%d bytes are used", n)
	}

	counter := freehold.NewTagged(next, "")
	for _, tt := range []struct {
		size int // of each block, of which two are freed
		want string
	}{
		{30, "freehold: Tagged.Free: more blocks than this Tagged has handed out: a double free, or a block from elsewhere"},
		{60, "freehold: Tagged.Free: 60 bytes, more than this Tagged has handed out: a double free, or a block from elsewhere"},
	} {
		b := freehold.Must(counter.Alloc(100, 8))
		next.f = func() { counter.Free(b[:tt.size]) }
		wantPanic(t, tt.want, func() { counter.Free(b[:tt.size]) })
		if c := counter.Counts(); c.Live != 0 || c.LiveBytes != 100-tt.size {
			t.Errorf("%+v", c)
		}
		counter = freehold.NewTagged(next, "")
	}
}

// A peak that another goroutine has raised meanwhile is not lowered.
func TestTaggedPeakNeverGoesDown(t *testing.T) {
	counter := freehold.NewTagged(alloctest.New(t), "")
	var late []byte
	defer freehold.OnPeak(func() {
		if late == nil {
			late = make([]byte, 0)
			late = freehold.Must(counter.Alloc(200, 8))
		}
	})()
	b := freehold.Must(counter.Alloc(100, 8))
	if peak := counter.Counts().PeakBytes; peak != 300 {
		t.Errorf("the peak is %d bytes, want 300", peak)
	}
	counter.Free(b)
	counter.Free(late)
}

// TestCounterIsNeverNegative: a block counts as allocated before it counts as freed.
func TestTaggedIsNeverNegative(t *testing.T) {
	counter := freehold.NewTagged(alloctest.New(t), "")
	var workers, watcher sync.WaitGroup
	done := make(chan struct{})
	watcher.Go(func() {
		for {
			if c := counter.Counts(); c.Live < 0 || c.LiveBytes < 0 || c.PeakBytes > 4*100 {
				t.Errorf("%+v", c)
				return
			}
			select {
			case <-done:
				return
			default:
				runtime.Gosched()
			}
		}
	})
	for range 4 {
		workers.Go(func() {
			for range 3000 {
				counter.Free(freehold.Must(counter.Alloc(100, 8)))
			}
		})
	}
	workers.Wait()
	close(done)
	watcher.Wait()
	if c := counter.Counts(); c.Allocs != 12000 || c.Frees != 12000 || c.LiveBytes != 0 {
		t.Errorf("%+v", c)
	}
}
