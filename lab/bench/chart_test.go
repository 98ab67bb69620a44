package bench

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"
)

// A chart has a panel for each trace, and a line for each peer that was measured there.
func TestChart(t *testing.T) {
	r := &run{cells: map[string]map[string]*cell{}}
	hits := func(name string, of map[string]float64) {
		b := &benchmark{name: name}
		r.benchmarks = append(r.benchmarks, b)
		r.cells[name] = map[string]*cell{}
		for _, who := range []string{"freehold", "otter"} {
			b.peers = append(b.peers, peer{name: who})
			if v, ok := of[who]; ok {
				values := []benchfmt.Value{{Value: v, Unit: hitsUnit}}
				r.cells[name][who] = &cell{samples: []sample{{Result: &benchfmt.Result{Values: values}}}}
			}
		}
	}
	var out bytes.Buffer
	if err := writeChart(&out, r); err == nil {
		t.Error("a run without hits has a chart")
	}
	hits("Hits/trace=p3/entries=10", map[string]float64{"freehold": .25, "otter": .5})
	hits("Hits/trace=oltp/entries=10", map[string]float64{"freehold": .125})
	hits("Pair/size=64", map[string]float64{"freehold": 7})
	hits("Hits/trace=p3/entries=20", map[string]float64{"freehold": .75, "otter": .5})

	var got []string
	for _, l := range trails(r) {
		got = append(got, l.trace+" "+l.peer)
		for _, p := range l.points {
			if want := r.cell(&benchmark{name: "Hits/trace=" + l.trace + "/entries=" + map[float64]string{10: "10", 20: "20"}[p.X]}, peer{name: l.peer}).figures(hitsUnit).median; p.Y != want {
				t.Errorf("%s of %s has %v hits with %v entries, want %v", l.trace, l.peer, p.Y, p.X, want)
			}
		}
	}
	if got := strings.Join(got, ", "); got != "oltp freehold, p3 freehold, p3 otter" {
		t.Errorf("lines of %s", got)
	}
	if err := writeChart(&out, r); err != nil || !strings.HasPrefix(out.String(), "<?xml") {
		t.Errorf("%v, %.300s", err, out.String())
	}
	for part, want := range map[string]int{
		">p3<": 1, ">freehold<": 2,
		">0<": 1, ">0.00<": 1, // each axis begins there
		"stroke:#F15A60": 8, "A2.5,2.5": 10, // lines of freehold and its circles, of two arcs each; with the legends
		"stroke:#7AC36A": 5, // of otter
	} {
		if n := strings.Count(out.String(), part); n != want {
			t.Errorf("%d times %s, want %d", n, part, want)
		}
	}
}
