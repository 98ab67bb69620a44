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
	"sync"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/lab/subject"
)

var tinyLive = Live{Live: 1 << 20, Headroom: 128 << 20, Time: 20 * time.Millisecond, Workers: 2, Array: 64 << 10}

func TestLiveRuns(t *testing.T) {
	for _, r := range LiveRuns([]string{"array", "strings"}, []string{"go", "flat", "freehold"}, Tunings) {
		again, err := LiveRunNamed(r.Name())
		if err != nil || again.Name() != r.Name() {
			t.Errorf("%s is not found under its name: %v", r.Name(), err)
		}
	}
	for _, name := range []string{"", "array", "array/go", "array/go/nothing", "strings/flat/default", "array/go/default/more"} {
		if r, err := LiveRunNamed(name); err == nil {
			t.Errorf("%q is %s", name, r.Name())
		}
	}
}

// The runtime stops all goroutines twice for each collection.
func TestCollectorCountsStops(t *testing.T) {
	before := readCollector()
	runtime.GC()
	after := readCollector()
	if _, cycles, _ := after.since(before); cycles == 0 || after.busySince(before) && cycles == 1 {
		t.Errorf("%d collections, in progress: %v", cycles, after.busySince(before))
	}
}

// Memory that runs out is a result; anything else is an error.
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
		name             string
		adding, checking error
		reserve          int64
		cancel           bool
		stopped          string // in the figures
		err              error
	}{
		{name: "nothing fails"},
		{name: "out of memory", adding: freehold.ErrOutOfMemory, stopped: freehold.ErrOutOfMemory.Error()},
		{name: "another error", adding: wrong, err: wrong},
		{name: "damage", checking: wrong, err: wrong},
		{name: "too little memory", adding: context.Canceled, reserve: math.MaxInt64, stopped: "are to stay available"},
		{name: "interrupted", cancel: true, err: context.Canceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			short := make(chan bool)
			onShortage = sync.OnceFunc(func() { close(short) })
			defer func() { onShortage = nil }()
			closed := 0
			data := &subject.Data{
				Put: func(int) error {
					if tt.cancel {
						cancel()
					}
					if tt.reserve > 0 {
						<-short
					}
					return tt.adding
				},
				Checks: func() int { return 1 }, Check: func(int) error { return tt.checking },
				OffHeap: func() int64 { return 0 }, Close: func() { closed++ },
			}
			store := subject.Store{Memory: "go", Entry: 16, Open: func(int) (*subject.Data, error) { return data, nil }}
			l := tinyLive
			l.Reserve = tt.reserve
			f, err := l.Run(ctx, LiveRun{subject.Shape{Name: "failing", Stores: []subject.Store{store}}, store, TuningLimit}, silent)
			if !errors.Is(err, tt.err) {
				t.Errorf("the error is %v, want %v", err, tt.err)
			}
			if !strings.Contains(f.Stopped, tt.stopped) || (f.Stopped == "") != (tt.stopped == "") {
				t.Errorf("stopped %q, want %q", f.Stopped, tt.stopped)
			}
			if closed > 1 || closed == 0 && tt.reserve == 0 {
				t.Errorf("the data was closed %d times", closed)
			}
		})
	}
}

func TestWatchMemory(t *testing.T) {
	ctx, stop := watchMemory(t.Context(), math.MaxInt64)
	defer stop()
	<-ctx.Done()
	var short shortageError
	if err := context.Cause(ctx); !errors.As(err, &short) || short.available <= 0 || short.reserve != math.MaxInt64 {
		t.Errorf("the cause is %v", err)
	}
	ctx, stop = watchMemory(t.Context(), 0)
	time.Sleep(30 * time.Millisecond)
	if err := ctx.Err(); err != nil {
		t.Errorf("with nothing to keep free: %v", err)
	}
	stop()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after stop: %v", err)
	}
}

func TestUsualReserve(t *testing.T) {
	for total, want := range map[int64]int64{0: 0, 512 << 20: 128 << 20, 2 << 30: 256 << 20, 100 << 30: 5 << 30} {
		if got := usualReserve(total); got != want {
			t.Errorf("of %d bytes, %d are kept, want %d", total, got, want)
		}
	}
}

func TestLiveRefusal(t *testing.T) {
	_, available := budget.Memory()
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
		{"large, on the Go heap", "array/go/default", func(l *Live) { l.Live = available / 2 }, "array of pointers (Go heap, default) may take"},
		{"large, off it", "array/freehold/default", func(l *Live) { l.Live = available / 2 }, ""},
		{"too large for either", "array/freehold/default", func(l *Live) { l.Live = 4 * available }, "array of pointers (freehold, default) may take"},
		{"a reserve", "nodes/flat/default", func(l *Live) { l.Reserve = 2 * available }, "are to stay so"},
		{"large, with a limit", "array/go/limit", func(l *Live) { l.Live = available * 3 / 4 }, "array of pointers (Go heap, limit) may take"},
		{"large, off it, with a limit", "array/freehold/limit", func(l *Live) { l.Live = available * 3 / 4 }, ""},
		{"headroom beyond the memory", "array/freehold/limit", func(l *Live) { l.Headroom = 2 * available }, "may take"},
		{"which the default does not use", "array/freehold/default", func(l *Live) { l.Headroom = 2 * available }, ""},
	}
	for _, tt := range tests {
		r, err := LiveRunNamed(tt.run)
		if err != nil {
			t.Fatal(err)
		}
		l := tinyLive
		tt.change(&l)
		err = l.Refusal(r)
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
		{before, 0, 0, 0, false},
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
