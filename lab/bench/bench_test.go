package bench

import (
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// What cannot be measured or written is refused before anything is built.
func TestWrongOptionsAreRefusedFirst(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "none", "x")
	for want, o := range map[string]Command{
		"--rounds 0, want 1 or more":    {Sample: 1},
		"--rounds -1, want 1 or more":   {Rounds: -1, Sample: 1},
		"--sample 0s, want more than 0": {Rounds: 1},
		"begins with zeroed or sort":    {Rounds: 1, Sample: 1, Best: true, Loads: []string{"zeroed", "sort"}},
		"--before is for --best":        {Rounds: 1, Sample: 1, Before: "."},
		`no load begins with "pear"`:    {Rounds: 1, Sample: 1, Loads: []string{"pear"}},
		"open " + nowhere:               {Quick: true, Out: nowhere},
	} {
		var errs bytes.Buffer
		if err := o.Run(t.Context(), cli.Streams{Out: io.Discard, Err: &errs}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		if errs.Len() > 0 {
			t.Errorf("%q was printed", errs.String())
		}
	}
}

func TestExportOnStandardOutput(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	needTools(t)
	var out, errs bytes.Buffer
	o := Command{Out: "-", Quick: true, Loads: []string{"pair/size=64/goroutines=1"}, Rows: []string{"freehold-interface"}}
	if err := o.Run(t.Context(), cli.Streams{Out: &out, Err: &errs}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.HasPrefix(text, "goos: ") || !strings.Contains(text, "\nBenchmarkPair/size=64/goroutines=1/peer=freehold-interface") {
		t.Errorf("standard output is %q", text)
	}
	if text := errs.String(); !strings.HasPrefix(text, "bench: building 2 programs") || !strings.Contains(text, "freehold beside its peers") {
		t.Errorf("standard error is %q", text)
	}
}

func TestSelection(t *testing.T) {
	all := []*program{
		{name: "freehold", pkg: "alloc", names: []string{"Pair/size=64/peer=freehold", "Pair/size=641/peer=freehold", "Huge/x/peer=freehold", "Mixed/x/peer=freehold"}},
		{name: "go", pkg: "alloc", names: []string{"Pair/size=64/peer=go"}},
		{name: "c", pkg: "alloc", native: true, runs: []string{"Pair/", "Huge/"}},
		{name: "gone", pkg: "alloc", skip: "not here", names: []string{"Pair/size=64/peer=gone"}},
		{name: "keyed", pkg: "keyed", names: []string{"Numbers/op=hit/peer=go-map"}},
	}
	for _, tt := range []struct {
		selection
		want string
	}{
		{selection{}, "Pair/size=64: freehold go c, Pair/size=641: freehold c, Mixed/x: freehold, Numbers/op=hit: go-map"},
		{selection{full: true, rows: []string{"C"}}, "Pair/size=64: c, Pair/size=641: c, Huge/x: c"},
		{selection{loads: []string{"huge", "pair/size=64/"}}, "Huge/x: freehold c"},
		{selection{loads: []string{"pair/size=64"}, rows: []string{"go"}}, "Pair/size=64: go"},
	} {
		found, err := tt.benchmarksOf(all)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range found {
			text := b.name + ":"
			for _, p := range b.peers {
				text += " " + p.name
			}
			got = append(got, text)
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%v: %v, want %s", tt.selection, got, tt.want)
		}
	}
	if _, err := (selection{rows: []string{"freehole"}}).benchmarksOf(all); err == nil {
		t.Error("a row that is not there was accepted")
	}
	if _, err := (selection{}).benchmarksOf([]*program{{name: "x", names: []string{"Other/peer=x"}}}); err == nil {
		t.Error("a benchmark without a group was accepted")
	}
}

// Of an old tree's program only freehold is measured, by the name that it has there.
func TestBeforeIsFreeholdAlone(t *testing.T) {
	old := &program{name: "keyed-before", pkg: "keyed", tree: "old", names: []string{"Numbers/op=hit/peer=freehold-map", "Numbers/op=hit/peer=go-map"}}
	found, err := selection{}.benchmarksOf([]*program{old})
	if err != nil || len(found) != 1 || len(found[0].peers) != 1 || found[0].peers[0].name != "freehold-map-before" {
		t.Fatalf("%v, %v", found, err)
	}
	if args := (scale{name: "usual"}).args(found[0], found[0].peers[0])[1]; !strings.HasSuffix(args, "/^peer=freehold-map$") {
		t.Errorf("it is run by %s", args)
	}
}

// A second container in the same process would grow in the pages that the first one has left.
func TestHeldIsMeasuredOnce(t *testing.T) {
	for name, want := range map[string]string{"op=held": "1x", "op=hit": "300ms"} {
		b := &benchmark{name: "Numbers/entries=1M/" + name, group: &group{longer: 5}}
		args := (scale{name: "usual", time: 60 * time.Millisecond}).args(b, peer{"go-map", &program{pkg: "keyed"}})
		if !slices.Contains(args, "-test.benchtime="+want) {
			t.Errorf("%s: %v, want a time of %s", name, args, want)
		}
	}
}

func TestNeeds(t *testing.T) {
	for _, tt := range []struct {
		selection
		want string
	}{
		{selection{loads: []string{"numbers"}}, "keyed keyed-boost keyed-absl"},
		{selection{loads: []string{"reset"}}, "freehold freehold-arena freehold-shared go ristretto-allocator"},
		{selection{loads: []string{"pair"}, rows: []string{"c-"}}, "freehold c-libc c-jemalloc c-mimalloc c-tcmalloc-gperftools c-tcmalloc-google c-mimalloc3 c-rpmalloc c-snmalloc"},
		{selection{rows: []string{"go-map"}}, "freehold sorts keyed keyed-boost keyed-absl"},
	} {
		var got []string
		for _, p := range programs("") {
			if tt.needs(p) {
				got = append(got, p.name)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%v needs %v, want %s", tt.selection, got, tt.want)
		}
	}
}

// runOf makes a run of one sample each: figures in ns by benchmark and peer.
func runOf(ns map[string]map[string]float64) *run {
	r := &run{cells: map[string]map[string]*cell{}}
	for name, peers := range ns {
		r.cells[name] = map[string]*cell{}
		for who, v := range peers {
			r.cells[name][who] = cellOf(v)
		}
	}
	return r
}

// cellOf makes a cell of figures in ns, one for each round.
func cellOf(ns ...float64) *cell {
	c := &cell{}
	for round, v := range ns {
		c.samples = append(c.samples, sampleOf(round, v, false))
	}
	return c
}

func sampleOf(round int, ns float64, noisy bool) sample {
	values := []benchfmt.Value{{Value: ns / 1e9, Unit: "sec/op", OrigValue: ns, OrigUnit: "ns/op"}}
	return sample{Result: &benchfmt.Result{Values: values}, round: round, noisy: noisy}
}

// What slows a whole round down slows both sides of a ratio.
func TestRatioIsOfTheSameRound(t *testing.T) {
	own, other := cellOf(10, 40, 12, 44, 9), cellOf(20, 80, 20, 80, 20)
	if s := ratio("ns/op", own, other); s.median != 0.5 || s.least() != 0.45 || s.most() != 0.6 {
		t.Errorf("ratio is %+v", s)
	}
	other.samples = other.samples[1:] // a round without a partner does not count
	if s := ratio("ns/op", own, other); len(s.values) != 4 {
		t.Errorf("%d rounds compared, want 4", len(s.values))
	}
	if s := cellOf(4, 1, 2, 100).figures("ns/op"); s.median != 3 { // even: between the middle two
		t.Errorf("median %v, want 3", s.median)
	}
}

func TestCells(t *testing.T) {
	g := &groups[0]
	heap, other := peer{"go", &program{tags: "peer_goheap"}}, peer{"c", &program{}}
	one := &benchmark{"Pair/goroutines=1", g, []peer{other, heap}}
	two := &benchmark{"Pair/goroutines=2", g, []peer{other, heap}}
	r := runOf(map[string]map[string]float64{one.name: {"go": 30, "c": 10}, two.name: {"go": 45e6, "c": 12}})
	for _, tt := range []struct {
		b    *benchmark
		p    peer
		want string
	}{
		{one, other, "10.0"},
		{one, heap, "30.0 (3.00x)"},
		{two, other, "12.0\n1.20 of one"},
		{two, heap, "45.0 ms (3,750,000x)\n1500000.00 of one"},
		{one, peer{"none", &program{}}, ""},
	} {
		if got := r.cellText(tt.b, tt.p, "ns/op"); got != tt.want {
			t.Errorf("%s of %s: %q, want %q", tt.b.name, tt.p.name, got, tt.want)
		}
	}
	s := &r.cells[one.name]["go"].samples[0]
	s.noisy, s.Values = true, append(s.Values, benchfmt.Value{Unit: "gcs"})
	if got := r.cellText(one, heap, "ns/op"); got != "30.0! (3.00x)\nno collection" {
		t.Errorf("a noisy sample without a collection: %q", got)
	}
}

// The best is the least of the peers that count, and its ratio is of the same round.
func TestBest(t *testing.T) {
	b := &benchmark{name: "Scatter/size=64/goroutines=1", group: &groups[0]}
	r := &run{benchmarks: []*benchmark{b}, cells: map[string]map[string]*cell{b.name: {}}}
	for _, c := range []struct {
		name, allocator string
		ns              []float64
		loop            bool
	}{
		{"freehold", "", []float64{12, 30}, false}, {"freehold-before", "", []float64{24, 30}, false}, {"go", "", []float64{50, 50}, false},
		{"c-a", "a 1", []float64{9, 10}, false}, {"c-b", "b 2", []float64{6, 10}, false},
		{"freehold-pool", "", []float64{1, 1}, false}, {"loop-c", "", []float64{1, 1}, true},
	} {
		b.peers = append(b.peers, peer{c.name, &program{pkg: "alloc", allocator: c.allocator, loop: c.loop}})
		r.cells[b.name][c.name] = cellOf(c.ns...)
		for _, s := range r.cells[b.name][c.name].samples {
			s.Values[0].OrigUnit = cpuUnit
		}
	}
	var text strings.Builder
	writeBest(&text, r, chosen([]string{"scatter/size=64/goroutines=1"}))
	want := "| scatter, 64 B, on one | cpu-ns/op | b 2 | 8.000 | 21.0 | 2.50 (2.00 to 3.00) | 27.0 | 0.75 (0.50 to 1.00) |\n"
	if !strings.HasSuffix(text.String(), "---|\n"+want) {
		t.Errorf("%s\nwant %s", &text, want)
	}
	if only(r.benchmarks, chosen(nil)); len(b.peers) != 5 {
		t.Errorf("%d peers are left, want 5: %v", len(b.peers), b.peers)
	}
}

func TestCountsOf(t *testing.T) {
	out := "==7== I   refs:      1,234,567\n==7== I1  misses: 5\n==7== LLi misses: 6\n" +
		"==7== D   refs:      89  (70 rd + 19 wr)\n==7== D1  misses: 34 (3 rd + 31 wr)\n==7== LLd misses: 1 (1 rd + 0 wr)\n==7== LL misses: 7\n"
	if c, err := countsOf([]byte(out)); c != (counts{1234567, 89, 34, 1}) || err != nil {
		t.Errorf("%v, %v", c, err)
	}
	if _, err := countsOf([]byte("==7== I   refs: 1\n")); err == nil {
		t.Error("output without totals was accepted")
	}
}

func TestDisturbance(t *testing.T) {
	from := busy{all: 101 * time.Second, own: 40 * time.Second, at: time.Now()}
	const s, ms = time.Second, time.Millisecond
	for _, tt := range []struct {
		name           string
		wall, all, own time.Duration
		share          float64
		noisy          bool
	}{
		{"all of it ours", s, 2 * s, 2 * s, 0, false},
		{"a tick of rounding", 100 * ms, 110 * ms, 100 * ms, 0.1, false},
		{"ours counted ahead of all", 100 * ms, 90 * ms, 100 * ms, 0, false},
		{"a neighbour on the other processor", s, 2 * s, s, 1, true},
		{"a neighbour now and then", 10 * s, 11 * s, 10 * s, 0.1, true},
		{"under the limit", 10 * s, 10*s + 200*ms, 10 * s, 0.02, false},
		{"no time passed", 0, s, 0, 0, false},
	} {
		d := between(from, busy{from.all + tt.all, from.own + tt.own, from.at.Add(tt.wall)}, nil)
		share, noisy := d.share(), d.noisy(0.03)
		if diff := share - tt.share; diff > 1e-9 || diff < -1e-9 || noisy != tt.noisy {
			t.Errorf("%s: others %v, noisy %v; want %v, %v", tt.name, share, noisy, tt.share, tt.noisy)
		}
	}
}
