package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/freehold-go/freehold"
)

func openBackend(t *testing.T, name string) backend {
	t.Helper()
	kind, err := backendNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := kind.open(0)
	if unavailable := (unavailableError{}); errors.As(err, &unavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	return b
}

func TestSawtooth(t *testing.T) {
	for _, kind := range backends {
		for _, l := range []load{
			{Sizes: "big", High: 24 << 20, Low: 1 << 20, Cycles: 2, Goroutines: 2, Seed: 1},
			{Sizes: "small", High: 4 << 20, Low: 64 << 10, Cycles: 3, Goroutines: 3, Seed: 2},
			{Sizes: "both", High: 16 << 20, Low: 0, Cycles: 2, Goroutines: 1, Seed: 3},
		} {
			t.Run(kind.name+"/"+string(l.Sizes), func(t *testing.T) {
				s := newSawtooth(l, openBackend(t, kind.name))
				cycles, last := 0, 0.0
				s.afterCycle = func() { cycles++ }
				s.progress = func(f float64, text string) {
					if f < 0 || f > 1 || text == "" {
						t.Errorf("progress %v %q", f, text)
					}
					last = f
				}
				o, err := s.run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				_ = last // set only if the run took long enough
				if cycles != l.Cycles || len(o.Teeth) != l.Cycles {
					t.Errorf("%d cycles, %d calls, want %d", len(o.Teeth), cycles, l.Cycles)
				}
				for _, tooth := range o.Teeth {
					if tooth.PeakLive > l.High || tooth.PeakLive < l.High/4 {
						t.Errorf("cycle %d rose to %d live bytes, not to about %d", tooth.Cycle, tooth.PeakLive, l.High)
					}
					if tooth.Live > l.Low {
						t.Errorf("cycle %d fell to %d live bytes, more than %d", tooth.Cycle, tooth.Live, l.Low)
					}
				}
				if o.End == nil || o.End.Live != 0 || o.End.Allocated > 0 {
					t.Errorf("ended with %+v, want nothing live", o.End)
				}
				if len(o.Samples) == 0 || o.Chunks == 0 {
					t.Errorf("%d samples, %d chunks", len(o.Samples), o.Chunks)
				}
			})
		}
	}
}

func TestSawtoothIsReproducible(t *testing.T) {
	run := func(backend string, seed uint64) *outcome {
		s := newSawtooth(load{Sizes: "small", High: 2 << 20, Low: 1 << 18, Cycles: 3, Goroutines: 2, Seed: seed}, openBackend(t, backend))
		o, err := s.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	a, b, other := run("go", 5), run("freehold", 5), run("go", 6)
	if a.Chunks != b.Chunks {
		t.Errorf("the same seed gave %d and %d chunks", a.Chunks, b.Chunks)
	}
	differs := false
	for i := range a.Teeth {
		if a.Teeth[i].Live != b.Teeth[i].Live || a.Teeth[i].PeakLive != b.Teeth[i].PeakLive {
			t.Errorf("cycle %d: the same seed gave %+v and %+v", i+1, a.Teeth[i], b.Teeth[i])
		}
		differs = differs || a.Teeth[i].Live != other.Teeth[i].Live
	}
	if !differs {
		t.Error("another seed gave the same run")
	}
}

// faulty is the Go heap with a defect.
type faulty struct {
	goHeap
	allocs  atomic.Int64
	failAt  int64  // this allocation fails
	same    []byte // if set, every allocation is a part of it
	counted int64  // what stats says
}

func (f *faulty) alloc(size int) ([]byte, error) {
	if f.allocs.Add(1) == f.failAt {
		return nil, freehold.ErrOutOfMemory
	}
	if f.same != nil {
		return f.same[:size], nil
	}
	return f.goHeap.alloc(size)
}
func (f *faulty) stats() backendStats { return backendStats{allocated: f.counted} }
func (f *faulty) close()              {}

var tiny = load{Sizes: "small", High: 1 << 20, Low: 1 << 16, Cycles: 4, Goroutines: 2, Seed: 1}

func TestSawtoothKeepsResultsWhenMemoryRunsOut(t *testing.T) {
	healthy := &faulty{counted: -1}
	s := newSawtooth(tiny, healthy)
	if _, err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = newSawtooth(tiny, &faulty{failAt: healthy.allocs.Load() - 3, counted: -1}) // in the last cycle
	o, err := s.run(t.Context())
	if !errors.Is(err, freehold.ErrOutOfMemory) || !strings.Contains(err.Error(), "cycle 4, rise") {
		t.Errorf("the error is %v", err)
	}
	if len(o.Teeth) != 3 || o.End != nil || len(o.Samples) == 0 {
		t.Errorf("%d cycles were kept, end %v, want 3 and none", len(o.Teeth), o.End)
	}
}

func TestSawtoothFindsCorruption(t *testing.T) {
	alone := tiny
	alone.Goroutines = 1 // the race detector would find it first
	s := newSawtooth(alone, &faulty{same: make([]byte, maxSmallChunk), counted: -1})
	if _, err := s.run(t.Context()); err == nil || !strings.Contains(err.Error(), "memory corrupted") {
		t.Errorf("blocks that overlap gave %v", err)
	}
}

func TestSawtoothFindsLeaks(t *testing.T) {
	s := newSawtooth(tiny, &faulty{counted: 48})
	if _, err := s.run(t.Context()); err == nil || !strings.Contains(err.Error(), "48 as allocated") {
		t.Errorf("an allocator that still counts 48 bytes gave %v", err)
	}
}

func TestSawtoothStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := tiny
	l.Cycles = 1_000_000
	s := newSawtooth(l, openBackend(t, "freehold"))
	s.afterCycle = func() {
		if len(s.out.Teeth) == 2 {
			cancel()
		}
	}
	o, err := s.run(ctx)
	if !errors.Is(err, context.Canceled) || len(o.Teeth) != 2 {
		t.Errorf("stopped after %d cycles with %v, want 2", len(o.Teeth), err)
	}
}

func TestFragmentation(t *testing.T) {
	tests := []struct {
		tooth tooth
		start int64
		want  float64
	}{
		{tooth{AfterSettle: 1100, Live: 1000}, 100, 1},
		{tooth{AfterSettle: 1600, Live: 1000}, 100, 1.5},
		{tooth{AfterSettle: 1600, Live: 0}, 100, 0}, // nothing to divide by
	}
	for _, tt := range tests {
		if got := tt.tooth.fragmentation(tt.start); got != tt.want {
			t.Errorf("%+v from %d is %v, want %v", tt.tooth, tt.start, got, tt.want)
		}
	}
}

func TestMeterStaysSmall(t *testing.T) {
	m := newMeter(func() int64 { return 5 })
	for range 5*maxSamples + 3 {
		m.take()
	}
	if len(m.samples) > maxSamples || len(m.samples) < maxSamples/2 || cap(m.samples) != maxSamples {
		t.Errorf("%d samples are held, of at most %d", len(m.samples), maxSamples)
	}
	for i := 1; i < len(m.samples); i++ {
		if m.samples[i].Seconds < m.samples[i-1].Seconds {
			t.Fatalf("sample %d is older than the one before it", i)
		}
	}
	if m.interval() <= firstSamples {
		t.Error("samples are as frequent as at the start")
	}
	if m.takePeak() != m.samples[0].RSS && m.takePeak() != 0 {
		t.Error("takePeak did not start anew")
	}
}
