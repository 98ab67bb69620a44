package load

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/internal/sysmem"
	"github.com/freehold-go/freehold/lab/subject"
)

var tinyLive = Live{Live: 1 << 20, Headroom: 128 << 20, Time: 20 * time.Millisecond, Workers: 2, Array: 64 << 10}

// The runtime stops all goroutines twice for each collection.
func TestCollectorCountsStops(t *testing.T) {
	before := readCollector()
	runtime.GC()
	after := readCollector()
	if _, cycles, _ := after.since(before); cycles == 0 || after.busySince(before) && cycles == 1 {
		t.Errorf("%d collections, in progress: %v", cycles, after.busySince(before))
	}
}

func TestLiveRunsThatFail(t *testing.T) {
	if os.Getenv("FREEHOLD_TEST_LIVE") == "" { // it changes the collector's settings
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLiveRunsThatFail$")
		cmd.Env = append(os.Environ(), "FREEHOLD_TEST_LIVE=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	wrong := errors.New("wrong")
	for _, tt := range []struct {
		name    string
		adding  error
		damage  uint64
		reserve cli.Size
		cancel  bool
		want    string // of the error
	}{
		{name: "nothing fails"},
		{name: "an error", adding: wrong, want: "after 0 of 65536 entries: wrong"},
		{name: "damage", damage: 1, want: "add up to"},
		{name: "too little memory", reserve: math.MaxInt64, want: "are to stay available"},
		{name: "interrupted", cancel: true, want: "context canceled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			data := &subject.Data{
				Put: func(int) error {
					if tt.cancel {
						cancel()
					}
					return tt.adding
				},
				Sum: func() uint64 { return subject.SumOf(1<<16) + tt.damage }, Bytes: func() int64 { return 0 },
			}
			store := subject.Store{Memory: "go", Entry: 16, Open: func(int) (*subject.Data, error) { return data, nil }}
			l := tinyLive
			if l.Reserve = tt.reserve; l.Reserve > 0 {
				l.Live = 1 << 50 // it does not end of itself
			}
			_, err := l.Run(ctx, LiveRun{subject.Shape{Name: "failing", Stores: []subject.Store{store}}, store, TuningLimit}, silent)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want %q", err, tt.want)
			}
		})
	}
}

func TestUsualReserve(t *testing.T) {
	for total, want := range map[int64]cli.Size{0: 0, 512 << 20: 128 << 20, 2 << 30: 256 << 20, 100 << 30: 5 << 30} {
		if got := UsualReserve(total); got != want {
			t.Errorf("of %d bytes, %d are kept, want %d", total, got, want)
		}
	}
}

func TestLiveRefusal(t *testing.T) {
	_, available := sysmem.Memory()
	if available == 0 {
		t.Skip("this system does not say how much memory there is")
	}
	tests := []struct {
		name   string
		run    string
		change func(l *Live)
		want   string // "" is no refusal
	}{
		{"small", "array/go/default", func(l *Live) {}, ""},
		{"small, with a limit", "array/go/limit", func(l *Live) {}, ""},
		{"large, on the Go heap", "array/go/default", func(l *Live) { l.Live = cli.Size(available / 2) }, "array of pointers (Go heap, default) may take"},
		{"large, off it", "array/freehold/default", func(l *Live) { l.Live = cli.Size(available / 2) }, ""},
		{"too large for either", "array/freehold/default", func(l *Live) { l.Live = cli.Size(4 * available) }, "array of pointers (freehold, default) may take"},
		{"a reserve", "nodes/flat/default", func(l *Live) { l.Reserve = cli.Size(2 * available) }, "are to stay so"},
		{"large, with a limit", "array/go/limit", func(l *Live) { l.Live = cli.Size(available * 3 / 4) }, "array of pointers (Go heap, limit) may take"},
		{"large, off it, with a limit", "array/freehold/limit", func(l *Live) { l.Live = cli.Size(available * 3 / 4) }, ""},
		{"headroom beyond the memory", "array/freehold/limit", func(l *Live) { l.Headroom = cli.Size(2 * available) }, "may take"},
		{"which the default does not use", "array/freehold/default", func(l *Live) { l.Headroom = cli.Size(2 * available) }, ""},
	}
	for _, tt := range tests {
		name := strings.Split(tt.run, "/")
		r := LiveRuns(name[:1], name[1:2], name[2:])[0]
		l := tinyLive
		tt.change(&l)
		err := l.Refusal(r)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestCollectorSince(t *testing.T) {
	buckets := []float64{0, 0.001, 0.002, 0.004, math.Inf(1)}
	of := func(gc, all float64, cycles uint64, counts ...uint64) collector {
		return collector{gc, all, cycles, &metrics.Float64Histogram{Counts: counts, Buckets: buckets}}
	}
	before := of(1, 10, 3, 5, 0, 1, 0)
	tests := []struct {
		after  collector
		share  float64
		cycles int
		pause  float64
		busy   bool
	}{
		{before, -1, 0, -1, false},
		{of(3, 20, 3, 6, 0, 1, 0), -1, 0, -1, true}, // the first has not ended
		{of(3, 20, 5, 9, 0, 1, 0), 0.2, 2, 1, false},
		{of(3, 20, 5, 9, 1, 1, 0), 0.2, 2, 2, true},
		{of(9, 11, 4, 7, 0, 1, 0), 1, 1, 1, false},
		{of(1, 20, 4, 5, 0, 1, 2), 0, 1, 4, false}, // the last bucket has no end
	}
	for _, tt := range tests {
		share, cycles, pause := tt.after.since(before)
		if busy, odd := tt.after.busySince(before), tt.busy; busy != odd {
			t.Errorf("a collection is in progress: %v, want %v", busy, odd)
		}
		if math.Abs(share-tt.share) > 1e-9 || cycles != tt.cycles || math.Abs(pause-tt.pause) > 1e-9 {
			t.Errorf("%v, %d, %v ms, want %v, %d, %v ms", share, cycles, pause, tt.share, tt.cycles, tt.pause)
		}
	}
}

func TestWork(t *testing.T) {
	w := work{arrayBytes: 64 << 10}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for w.arrays.Load() < 3 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	w.fill(ctx, 0)
	if w.sum.Load() == 0 {
		t.Error("the arrays hold nothing")
	}
	began := time.Now()
	idle := func() bool { return false }
	w.run(t.Context(), 3, 50*time.Millisecond, idle)
	if took := time.Since(began); took < 49*time.Millisecond || len(w.late) != 50 {
		t.Errorf("%v, %d turns", took, len(w.late))
	}
	left := 7
	w = work{arrayBytes: 64 << 10}
	w.run(t.Context(), 1, 10*time.Millisecond, func() bool { left--; return left >= 0 })
	if len(w.late) != 17 {
		t.Errorf("%d turns, want 10 and 7 more", len(w.late))
	}
	w = work{arrayBytes: 64 << 10}
	w.run(t.Context(), 1, 10*time.Millisecond, func() bool { return true })
	if len(w.late) != 30 {
		t.Errorf("%d turns where a collection does not end, want 30", len(w.late))
	}
	w = work{arrayBytes: 64 << 10}
	w.run(ctx, 3, time.Hour, idle)
	if len(w.late) != 0 {
		t.Errorf("%d turns after the end", len(w.late))
	}
	if late, worst := w.lateness(0.99); late != 0 || worst != 0 {
		t.Errorf("no turns took %v and %v ms", late, worst)
	}
	for i := range 100 {
		w.late = append(w.late, time.Duration(100-i)*time.Millisecond)
	}
	if late, worst := w.lateness(0.99); late != 99 || worst != 100 {
		t.Errorf("turns of 1 to 100 ms took %v, and at most %v", late, worst)
	}
}
