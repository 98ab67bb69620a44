package bench

import (
	"cmp"
	"slices"
	"testing"

	measured "github.com/freehold-go/freehold/lab/bench/sample"
)

// runOf makes a run of one load and figures per row, one sample each.
func runOf(loads []load, ns map[string]map[string]float64) *run {
	r := &run{loads: loads, rounds: 1, cells: map[string]map[string]*cell{}}
	for key, rows := range ns {
		r.cells[key] = map[string]*cell{}
		for name, v := range rows {
			r.cells[key][name] = &cell{samples: []sample{{Sample: measured.Sample{NS: v, Ops: 1}}}}
		}
	}
	return r
}

func TestJudge(t *testing.T) {
	all := loads(fullScale)
	chosen := slices.DeleteFunc(slices.Clone(all), func(l load) bool { return l.key != "pair/64" && l.key != "pair2/64" })
	r := runOf(chosen, map[string]map[string]float64{
		"pair/64":  {"freehold": 8, "freehold-pool": 12, "freehold-pool-cache": 5, "c-jemalloc": 10, "go": 15},
		"pair2/64": {"freehold": 9},
	})
	r.rows = rows()
	r.cells["pair/64"]["go"].samples[0].Noisy = true
	want := map[string]verdict{
		"pair of 64 B, of native jemalloc's":                    {Value: 0.8, Result: "ok", Figures: "8.0 / 10.0"},
		"pair of 64 B, of jemalloc's through cgo":               {Result: "no figure for cgo-jemalloc", Figures: "8.0"},
		"pair of 64 B through a Cache, of native jemalloc's":    {Result: "no figure for freehold-cache"},
		"Pool pair of 64 B, of native tcmalloc's":               {Result: "no figure for c-tcmalloc", Figures: "12.0"},
		"Pool pair of 64 B through a Cache, of the fastest C's": {Value: 0.5, Result: "ok", Figures: "5.0 / 10.0"},
		"pair of 64 B, of Go's new":                             {Value: 8.0 / 15, Result: "MISSED", Figures: "8.0 / 15.0", Noisy: true},
		"pair of 64 B on two goroutines, of one":                {Value: 1.125, Result: "ok", Figures: "9.0 / 8.0"},
	}
	got := judge(r)
	if len(got) != len(want) {
		t.Errorf("%d verdicts, want %d: loads that did not run have none", len(got), len(want))
	}
	for _, v := range got {
		w := want[v.What]
		if v.Value != w.Value || v.Result != w.Result || v.Figures != w.Figures || v.Noisy != w.Noisy {
			t.Errorf("%s: got %+v, want %+v", v.What, v, w)
		}
	}
}

// What slows a whole round down slows both sides of a ratio.
func TestRatioIsOfTheSameRound(t *testing.T) {
	cellOf := func(ns ...float64) *cell {
		c := &cell{}
		for round, v := range ns {
			c.samples = append(c.samples, sample{Round: round, Sample: measured.Sample{NS: v}})
		}
		return c
	}
	own, other := cellOf(10, 40, 12, 44, 9), cellOf(20, 80, 20, 80, 20)
	if s := ratio(nanoseconds, own, other); s.Median != 0.5 || s.Min != 0.45 || s.Max != 0.6 {
		t.Errorf("ratio is %+v", s)
	}
	other.samples = other.samples[1:] // a round without a partner does not count
	if s := ratio(nanoseconds, own, other); s.N != 4 {
		t.Errorf("%d rounds compared, want 4", s.N)
	}
}

// The fastest C program is another one in another round.
func TestFastestC(t *testing.T) {
	r := runOf(nil, map[string]map[string]float64{"pair/64": {"c-jemalloc": 10, "c-tcmalloc": 6, "loop-c": 1, "go": 2}})
	r.rows = rows()
	second := func(name string, ns float64) {
		c := r.cells["pair/64"][name]
		c.samples = append(c.samples, sample{Round: 1, Sample: measured.Sample{NS: ns}, Noisy: name == "c-jemalloc"})
	}
	second("c-jemalloc", 5)
	second("c-tcmalloc", 7)
	c := r.fastestC("pair/64", nanoseconds)
	if s := c.spread(nanoseconds); s.N != 2 || s.Max != 6 || s.Min != 5 || !c.noisy() {
		t.Errorf("the fastest of each round: %+v", s)
	}
	if r.fastestC("pair/16", nanoseconds).measured() {
		t.Error("a load that did not run has a fastest program")
	}
}

// A target that names a load or a row that is not there would never be judged.
func TestTargetsNameWhatIsThere(t *testing.T) {
	all, everyone := loads(fullScale), rows()
	for _, target := range targets() {
		for _, of := range [][2]string{{target.load, target.row}, {cmp.Or(target.on, target.load), target.than}} {
			key, name := of[0], of[1]
			i := slices.IndexFunc(all, func(l load) bool { return l.key == key })
			if i < 0 {
				t.Errorf("%s: no load %q", target.what, key)
				continue
			}
			if name == "" || name == fastestC {
				continue
			}
			j := slices.IndexFunc(everyone, func(r *row) bool { return r.name == name })
			if j < 0 {
				t.Errorf("%s: no row %q", target.what, name)
			} else if !everyone[j].runs(all[i]) {
				t.Errorf("%s: row %s does not run %s", target.what, name, key)
			}
		}
	}
}
