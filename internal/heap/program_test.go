package heap_test

import (
	"math/rand/v2"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/heap"
	"github.com/freehold-go/freehold/internal/watch"
)

func TestConformance(t *testing.T) {
	tests := map[string]struct {
		o          heap.Options
		rate       int
		guard      int // one block in so many is guarded
		quarantine int // in bytes; blocks have red zones
		homes      int
	}{
		"plain":          {},
		"decay":          {o: heap.Options{Decay: 3_000_000}},
		"limit":          {o: heap.Options{MaxBytes: 1 << 30}},
		"hugePages":      {o: heap.Options{HugePages: true}},
		"wholePages":     {o: heap.Options{WholePages: true}},
		"sampled":        {rate: 300},
		"sampled all":    {rate: 1},
		"guarded":        {guard: 3, rate: 300},
		"guarded all":    {guard: 1},
		"sampled, pages": {o: heap.Options{WholePages: true}, rate: 10000},
		"homes":          {homes: 4},
		"homes, limit":   {o: heap.Options{MaxBytes: 1 << 30}, homes: 4},
		"zones":          {rate: 1000, quarantine: 1 << 18},
		"zones, limit":   {o: heap.Options{MaxBytes: 1 << 30}, rate: 1000, quarantine: 1 << 18},
		"zones, pages":   {o: heap.Options{WholePages: true}, rate: 1000, quarantine: 1 << 18},
		"all":            {rate: 300, guard: 3, quarantine: 1 << 18, homes: 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.quarantine > 0 && asan.Enabled {
				t.Skip("a write to a freed block ends the process")
			}
			heap.SampleAt(t, tt.rate)
			heap.GuardAt(t, tt.guard)
			heap.CheckBlocks(t, tt.quarantine)
			if tt.homes > 0 {
				heap.Homes(t, tt.homes)
			}
			alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
				return heap.Adapter{heap.NewHeap(t, tt.o)}
			}, &alloctest.Options{MaxAlign: 8 << 20, Concurrent: true, Detects: alloctest.AllMistakes})
		})
	}
}

// FuzzHeap reads its input as a program: see alloctest.RunProgram.
func FuzzHeap(f *testing.F) {
	f.Add([]byte{0, 0, 8, 0, 1, 0, 8, 0, 4, 0, 0, 0})
	f.Add([]byte{0, 0, 255, 255, 2, 0, 3, 255, 3, 0, 255, 255, 4, 0, 0, 0})
	f.Fuzz(func(t *testing.T, prog []byte) {
		heap.Homes(t, 1<<(len(prog)%3))
		h := heap.NewHeap(t, heap.Options{})
		for _, rate := range []int{0, 1, 500} {
			watch.SetSampleRate(rate)
			alloctest.RunProgram(t, heap.Adapter{h}, prog)
			watch.SetGuardRate(1+rate/100, 0)
			alloctest.RunProgram(t, heap.Adapter{h}, prog)
			watch.SetGuardRate(0, 0)
			if !asan.Enabled {
				watch.SetQuarantine(1 << 16)
				alloctest.RunProgram(t, heap.Adapter{h}, prog)
				watch.SetQuarantine(0)
			}
		}
		watch.SetSampleRate(0)
		heap.Check(h, t)
		h.Tick()
		heap.Check(h, t)
		if st := h.Stats(); st.Allocated != 0 || st.Blocks != 0 {
			t.Fatalf("after all is freed: %d bytes in %d blocks", st.Allocated, st.Blocks)
		}
		h.Trim()
		if st := h.Stats(); st.Active != 0 || st.Committed != st.Metadata {
			t.Fatalf("after Trim: %+v", st)
		}
	})
}

func program(r *rand.Rand, calls int) []byte {
	prog := make([]byte, 4*calls)
	for i := range prog {
		prog[i] = byte(r.Uint32())
	}
	return prog
}

// A heap at its limit frees the blocks in quarantine before it refuses one, small or large.
func TestLimitEndsTheQuarantine(t *testing.T) {
	if asan.Enabled {
		t.Skip("the sanitizer has a quarantine of its own")
	}
	heap.CheckBlocks(t, 1<<30)
	for _, size := range []int{1000, 100_000} {
		const limit = 8 << 20
		h := heap.NewHeap(t, heap.Options{MaxBytes: limit})
		for freed := 0; freed < 4*limit; freed += size {
			b, err := h.Alloc(size, 8, false)
			if err != nil {
				t.Fatalf("blocks of %d bytes: %v after %d were freed", size, err, freed)
			}
			h.Free(b)
		}
	}
}
