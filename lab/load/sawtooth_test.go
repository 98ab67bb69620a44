package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/lab/run"
	"github.com/freehold-go/freehold/lab/subject"
)

var silent = run.NewWriter(io.Discard)

func open(t *testing.T, name string) *subject.Allocator {
	t.Helper()
	a, err := subject.Named(name).Open(0)
	if errors.As(err, new(run.UnavailableError)) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestSawtooth(t *testing.T) {
	for _, name := range subject.Names() {
		for _, l := range []Sawtooth{
			{Sizes: "big", High: 24 << 20, Low: 1 << 20, Cycles: 2, Goroutines: 2, Seed: 1},
			{Sizes: "small", High: 4 << 20, Low: 64 << 10, Cycles: 3, Goroutines: 3, Seed: 2},
			{Sizes: "both", High: 16 << 20, Low: 0, Cycles: 2, Goroutines: 1, Seed: 3},
		} {
			t.Run(name+"/"+string(l.Sizes), func(t *testing.T) {
				var told bytes.Buffer
				o, err := l.Run(open(t, name), run.NewWriter(&told))
				if err != nil {
					t.Fatal(err)
				}
				cycles := 0
				for in := json.NewDecoder(&told); ; {
					var m run.Message
					if in.Decode(&m) != nil {
						break
					}
					if m.Part != nil {
						cycles++
					} else if m.Progress < 0 || m.Progress > 1 || m.Text == "" {
						t.Errorf("progress %v %q", m.Progress, m.Text)
					}
				}
				if cycles != l.Cycles+1 || len(o.Teeth) != l.Cycles+1 {
					t.Errorf("%d cycles, %d were told, want %d and the end", len(o.Teeth), cycles, l.Cycles)
				}
				for i, tooth := range o.Teeth[:l.Cycles] {
					if cli.Size(tooth.PeakLive) > l.High || cli.Size(tooth.PeakLive) < l.High/4 {
						t.Errorf("cycle %d rose to %d live bytes, not to about %d", i, tooth.PeakLive, l.High)
					}
					if cli.Size(tooth.Live) > l.Low {
						t.Errorf("cycle %d: %+v, want %d live at most", i, tooth, l.Low)
					}
					if want := float64(tooth.AfterSettle-o.Start) / float64(tooth.Live); tooth.Live > 0 && tooth.Ratio != want || tooth.Live == 0 && tooth.Ratio != -1 {
						t.Errorf("cycle %d: %v resident per live, want %v", i, tooth.Ratio, want)
					}
				}
				if o.EndLive != 0 || o.EndTrim < 0 || o.EndSettle < 0 {
					t.Errorf("ended with %+v, want nothing live", o)
				}
				if len(o.Samples) == 0 || o.Chunks == 0 {
					t.Errorf("%d samples, %d chunks", len(o.Samples), o.Chunks)
				}
			})
		}
	}
}

func TestSawtoothIsReproducible(t *testing.T) {
	run := func(name string, seed uint64) *SawtoothOutcome {
		l := Sawtooth{Sizes: "small", High: 2 << 20, Low: 1 << 18, Cycles: 3, Goroutines: 2, Seed: seed}
		o, err := l.Run(open(t, name), silent)
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

var tiny = Sawtooth{Sizes: "small", High: 1 << 20, Low: 1 << 16, Cycles: 4, Goroutines: 1, Seed: 1}

// allocFunc allocates in another way than the allocator that it has.
type allocFunc struct {
	freehold.Allocator
	alloc func(size int) ([]byte, error)
}

func (f allocFunc) Alloc(size, _ int) ([]byte, error) { return f.alloc(size) }

// allocating is the Go heap with a defect.
func allocating(t *testing.T, alloc func(size int) ([]byte, error)) *subject.Allocator {
	a := open(t, "go")
	a.Allocator = allocFunc{a.Allocator, alloc}
	return a
}

func TestSawtoothKeepsResultsWhenMemoryRunsOut(t *testing.T) {
	var allocs atomic.Int64
	most := int64(1 << 62)
	alloc := func(size int) ([]byte, error) {
		if allocs.Add(1) > most {
			return nil, freehold.ErrOutOfMemory
		}
		return make([]byte, size), nil
	}
	if _, err := tiny.Run(allocating(t, alloc), silent); err != nil {
		t.Fatal(err)
	}
	most = 2*allocs.Load() - 3 // in the last cycle of the next run
	o, err := tiny.Run(allocating(t, alloc), silent)
	if !errors.Is(err, freehold.ErrOutOfMemory) || !strings.Contains(err.Error(), "cycle 4 of 4, rise") {
		t.Errorf("the error is %v", err)
	}
	if len(o.Teeth) != 3 || o.EndLive != -1 || len(o.Samples) == 0 {
		t.Errorf("%d cycles were kept, %d live in the end, want 3 and unknown", len(o.Teeth), o.EndLive)
	}
}

func TestSawtoothFindsMistakes(t *testing.T) {
	same := make([]byte, int(small.most))
	overlap := func(size int) ([]byte, error) { return same[:size], nil }
	if _, err := tiny.Run(allocating(t, overlap), silent); err == nil || !strings.Contains(err.Error(), "memory corrupted") {
		t.Errorf("blocks that overlap gave %v", err)
	}
	leaky := open(t, "go")
	leaky.Live = func() int { return 48 }
	if _, err := tiny.Run(leaky, silent); err == nil || !strings.Contains(err.Error(), "48 blocks count as live") {
		t.Errorf("an allocator that still counts 48 blocks gave %v", err)
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
	if m.takePeak() != m.samples[0].RSS && m.takePeak() != 0 {
		t.Error("takePeak did not start anew")
	}
}
