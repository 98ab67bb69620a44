package heap

import (
	"fmt"
	"math"
	"testing"
)

// A larger block is more likely to be sampled, and what the samples stand for is what
// was allocated.
func TestSamplesStandForAllBlocks(t *testing.T) {
	const rate, total = 4096, 64 << 20
	for _, size := range []int{16, 1000, 4096, 30000, 100000} {
		sampleAt(t, rate)
		name := fmt.Sprint(nameOf(t), size)
		h := newHeap(t, Options{Name: name})
		o := newLocalCache(h) // whose countdown is no other goroutine's
		n := total / size
		for range n {
			b, err := o.Alloc(size, 8, false)
			if err != nil {
				t.Fatal(err)
			}
			o.Free(b)
		}
		o.Close()
		u := usage(name)
		// The number of samples is random around n*p, with a variance of n*p*(1-p).
		p := -math.Expm1(-float64(size) / rate)
		tolerance := 5 * math.Sqrt(float64(n)*p*(1-p)) / p
		if off := math.Abs(float64(u.AllocObjects) - float64(n)); off > tolerance+1 {
			t.Errorf("size %d: %d blocks, want %d, at most %.0f more or less", size, u.AllocObjects, n, tolerance)
		}
		if off := math.Abs(float64(u.AllocBytes) - float64(n*size)); off > (tolerance+1)*float64(size) {
			t.Errorf("size %d: %d bytes, want %d", size, u.AllocBytes, n*size)
		}
		if u.FreeBytes != u.AllocBytes || u.FreeObjects != u.AllocObjects {
			t.Errorf("size %d: all is free, and the samples say %+v", size, u)
		}
	}
}

// The gaps have the distribution that the weights are for.
func TestGaps(t *testing.T) {
	sampleAt(t, 0)
	const rate, n = 1000, 200000
	for _, size := range []int64{1, 100, 1000, 3000} {
		below, alike := 0.0, 0
		for range n {
			state := sampling.random.Load()
			due := gap(rate) < size
			sampling.random.Store(state)
			if due == gapBelow(size, rate) {
				alike++
			}
			if due {
				below++
			}
		}
		p := -math.Expm1(-float64(size) / rate)
		if math.Abs(below-n*p) > 5*math.Sqrt(n*p*(1-p)) || alike != n {
			t.Errorf("%v of %d gaps are below %d, want %.0f; gapBelow says so of %d", below, n, size, n*p, alike)
		}
	}
	if gap(1) != 0 || gap(0) != 0 || gapBelow(0, 1) || !gapBelow(1, 1) {
		t.Error("rate 1 leaves gaps")
	}
	if g := gap(maxSampleRate); g < 0 {
		t.Errorf("a gap of %d", g)
	}
}

// A new rate is in force when SetSampleRate returns, in caches that exist.
func TestRateOfCachesInUse(t *testing.T) {
	sampleAt(t, math.MaxInt)
	h := newHeap(t, Options{Name: nameOf(t)})
	o := newLocalCache(h)
	defer o.Close()
	pairs := func() {
		for range 100 {
			h.Free(alloc(t, h, 64))
			b, _ := o.Alloc(64, 8, false)
			o.Free(b)
		}
	}
	pairs()
	wantUsage(t, nameOf(t), 0, 0, 0, 0)
	if was := SetSampleRate(1); int64(was) != min(math.MaxInt, maxSampleRate) {
		t.Errorf("the rate was %d", was)
	}
	pairs()
	wantUsage(t, nameOf(t), 200, 12800, 200, 12800)
	b := alloc(t, h, 100)
	SetSampleRate(0)
	pairs()
	wantUsage(t, nameOf(t), 201, 12900, 200, 12800)
	h.Free(b) // it was sampled, and counts
	wantUsage(t, nameOf(t), 201, 12900, 201, 12900)
	if got := panicOf(func() { SetSampleRate(-1) }); got != "freehold: track.SetSampleRate: bytes -1, want 0 or more" {
		t.Errorf("panic %q", got)
	}
}

// Sampling allocates nothing on the Go heap.
func TestSamplingLeavesGoHeapAlone(t *testing.T) {
	sampleAt(t, 1)
	h := newHeap(t, Options{Name: nameOf(t)})
	for _, size := range []int{64, 100000} {
		f := func() {
			b, _ := h.Alloc(size, 8, false)
			h.Free(b)
		}
		f()
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("size %d: %v allocations", size, n)
		}
	}
}
