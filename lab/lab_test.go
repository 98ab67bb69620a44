package main

import (
	"context"
	"errors"
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/intern"
)

// eachStore calls f with every store of every shape.
func eachStore(t *testing.T, f func(t *testing.T, s shape, st store)) {
	for _, s := range shapes {
		for _, st := range s.stores {
			t.Run(s.name+"/"+st.memory, func(t *testing.T) { f(t, s, st) })
		}
	}
}

func TestShapes(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range shapes {
		if s.name == "" || s.title == "" || seen[s.name] {
			t.Errorf("shape %q, %q: something is missing or there twice", s.name, s.title)
		}
		seen[s.name] = true
		if s.stores[0].memory != "go" || s.stores[len(s.stores)-1].memory != "freehold" {
			t.Errorf("shape %q does not begin on the Go heap and end on freehold", s.name)
		}
	}
	eachStore(t, func(t *testing.T, s shape, st store) {
		if !slices.Contains(memoryNames(), st.memory) || st.about == "" || st.entry < 8 {
			t.Errorf("%+v is incomplete", st)
		}
		for _, tuning := range tunings {
			r, err := labRunNamed(s.name + "/" + st.memory + "/" + tuning)
			if err != nil || r.shape.name != s.name || r.store.memory != st.memory || r.tuning != tuning {
				t.Errorf("%s is not found under its name: %v", r.name(), err)
			}
		}
	})
	for _, name := range []string{"", "array", "array/go", "array/go/nothing", "array/go/default/more"} {
		if r, err := labRunNamed(name); err == nil {
			t.Errorf("%q is %s", name, r.name())
		}
	}
}

// What is added is there, whatever the number of entries.
func TestDatasetsHoldTheirEntries(t *testing.T) {
	eachStore(t, func(t *testing.T, s shape, st store) {
		for _, n := range []int{0, 1, 7, nodeLists - 1, nodeLists, nodeLists + 1, 3*nodeLists + 5} {
			d, err := st.open(n)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range [][2]int{{0, n / 3}, {n / 3, n / 2}, {n / 2, n}} {
				if err := d.add(part[0], part[1]); err != nil {
					t.Fatal(err)
				}
			}
			for _, stride := range []int{1, 3} {
				if err := d.check(stride); err != nil {
					t.Errorf("%d entries: %v", n, err)
				}
			}
			if off := d.offHeap(); (off > 0) != (st.memory == "freehold") && n > 0 {
				t.Errorf("%d entries have %d bytes off-heap", n, off)
			}
			d.close()
		}
	})
}

// A dataset in which an entry is wrong or missing does not pass.
func TestDatasetsFindDamage(t *testing.T) {
	const n = 3*nodeLists + 5
	eachStore(t, func(t *testing.T, s shape, st store) {
		d, err := st.open(n)
		if err != nil {
			t.Fatal(err)
		}
		defer d.close()
		if err := d.add(0, n); err != nil {
			t.Fatal(err)
		}
		damage(t, d)
		if err := d.check(1); err == nil {
			t.Error("the damage is not found")
		}
	})
	for _, keys := range [][]uint64{
		{}, {2}, {nodeLists + 2}, {nodeLists + 2, 3}, {2, nodeLists + 2}, {nodeLists + 2, 2, 2}, {2*nodeLists + 2, nodeLists + 2, 2},
	} {
		err := checkLists(2*nodeLists, nodeLists, func(list int, key func(uint64) bool) {
			for _, k := range keys {
				if !key(k - 2) {
					return
				}
			}
		})
		if err == nil {
			t.Errorf("keys %v pass", keys)
		}
	}
}

// damage changes one entry.
func damage(t *testing.T, d dataset) {
	switch d := d.(type) {
	case *pointerArray:
		d.values[3] = d.values[4]
	case *flatArray:
		d.values[3]++
	case *offArray:
		d.values[3]++
	case *goNodes:
		d.heads[3] = d.heads[3].next
	case *flatNodes:
		d.heads[3] = d.heads[4]
	case *offNodes:
		d.heads[3].Get().key++
	case goMap:
		key := keyOf(3)
		d[string(key[:])]++
	case flatMap:
		delete(d, keyOf(3))
		d[keyText{}] = 1 // as many as there were
	case *offMap:
		key := keyOf(3)
		*d.entries.At(string(key[:]))++
	case *goStrings:
		d.all[3] = d.all[4]
	case *offStrings:
		missing := keyOf(3)
		d.all.Close()
		d.all = intern.New(d.heap, nil)
		for i := range 3*nodeLists + 5 {
			key := keyOf(i)
			if key == missing {
				key = keyText{}
			}
			if _, err := d.all.InternBytes(key[:]); err != nil {
				t.Fatal(err)
			}
		}
	default:
		t.Fatalf("this test does not know %T", d)
	}
}

var tinyLoad = labLoad{Live: 1 << 20, Headroom: 128 << 20, Time: 20 * time.Millisecond, Workers: 2, Array: 64 << 10}

// failing is a store whose dataset fails.
type failing struct {
	adding, checking error
	added            func()
	closed           *int
}

func (f failing) add(from, to int) error { f.added(); return f.adding }
func (f failing) check(int) error        { return f.checking }
func (f failing) offHeap() int64         { return 0 }
func (f failing) close()                 { *f.closed++ }

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
func TestLabRunsThatFail(t *testing.T) {
	if os.Getenv("FREEHOLD_TEST_LAB") == "" { // it changes the collector's settings
		code, out, errs := processOf(t, []string{"FREEHOLD_TEST_LAB=1"}, os.Args[0], "-test.run=^TestLabRunsThatFail$")
		if code != 0 {
			t.Errorf("exit code %d: %s%s", code, out, errs)
		}
		return
	}
	wrong := errors.New("wrong")
	tests := []struct {
		name    string
		d       failing
		reserve int64
		cancel  bool
		stopped string // in the figures
		err     error
	}{
		{name: "nothing fails"},
		{name: "out of memory", d: failing{adding: freehold.ErrOutOfMemory}, stopped: freehold.ErrOutOfMemory.Error()},
		{name: "another error", d: failing{adding: wrong}, err: wrong},
		{name: "damage", d: failing{checking: wrong}, err: wrong},
		{name: "too little memory", d: failing{adding: context.Canceled}, reserve: math.MaxInt64, stopped: "are to stay available"},
		{name: "interrupted", cancel: true, err: context.Canceled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			short := make(chan bool)
			onShortage = sync.OnceFunc(func() { close(short) })
			defer func() { onShortage = nil }()
			closed := 0
			tt.d.closed, tt.d.added = &closed, func() {
				if tt.cancel {
					cancel()
				}
				if tt.reserve > 0 {
					<-short
				}
			}
			l := tinyLoad
			l.Reserve = tt.reserve
			r := labRun{shape{name: "failing", stores: []store{{entry: 16}}}, store{memory: "go", entry: 16, open: func(int) (dataset, error) { return tt.d, nil }}, tuningLimit}
			f, err := measureLab(ctx, l, r, func(float64) {})
			if !errors.Is(err, tt.err) {
				t.Errorf("the error is %v, want %v", err, tt.err)
			}
			if !strings.Contains(f.Stopped, tt.stopped) || (f.Stopped == "") != (tt.stopped == "") {
				t.Errorf("stopped %q, want %q", f.Stopped, tt.stopped)
			}
			if closed > 1 || closed == 0 && tt.reserve == 0 {
				t.Errorf("the dataset was closed %d times", closed)
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

func TestLabRefusal(t *testing.T) {
	_, available := machineMemory()
	if available == 0 {
		t.Skip("this system does not say how much memory there is")
	}
	tests := []struct {
		name   string
		run    string
		change func(l *labLoad)
		want   string // "" is no refusal
	}{
		{"small", "array/go/default", func(l *labLoad) {}, ""},
		{"small, with a limit", "array/go/limit", func(l *labLoad) {}, ""},
		{"large, on the Go heap", "array/go/default", func(l *labLoad) { l.Live = available / 2 }, "array of pointers (Go heap, default) may take"},
		{"large, off it", "array/freehold/default", func(l *labLoad) { l.Live = available / 2 }, ""},
		{"too large for either", "array/freehold/default", func(l *labLoad) { l.Live = 4 * available }, "array of pointers (freehold, default) may take"},
		{"a reserve", "nodes/flat/default", func(l *labLoad) { l.Reserve = 2 * available }, "are to stay so"},
		{"large, with a limit", "array/go/limit", func(l *labLoad) { l.Live = available * 3 / 4 }, "array of pointers (Go heap, limit) may take"},
		{"large, off it, with a limit", "array/freehold/limit", func(l *labLoad) { l.Live = available * 3 / 4 }, ""},
		{"headroom beyond the memory", "array/freehold/limit", func(l *labLoad) { l.Headroom = 2 * available }, "may take"},
		{"which the default does not use", "array/freehold/default", func(l *labLoad) { l.Headroom = 2 * available }, ""},
	}
	for _, tt := range tests {
		r, err := labRunNamed(tt.run)
		if err != nil {
			t.Fatal(err)
		}
		l := tinyLoad
		tt.change(&l)
		err = l.refusal(r)
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

func TestLabWork(t *testing.T) {
	w := labWork{arrayBytes: 64 << 10}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for w.arrays.Load() < 3 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	w.work(ctx, 0)
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
	w = labWork{arrayBytes: 64 << 10}
	w.run(t.Context(), 1, 10*time.Millisecond, func() bool { left--; return left >= 0 })
	if len(w.late) != 17 {
		t.Errorf("%d turns, want 10 and 7 more", len(w.late))
	}
	w = labWork{arrayBytes: 64 << 10}
	w.run(t.Context(), 1, 10*time.Millisecond, func() bool { return true })
	if len(w.late) != 30 {
		t.Errorf("%d turns where a collection does not end, want 30", len(w.late))
	}
	w = labWork{arrayBytes: 64 << 10}
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
