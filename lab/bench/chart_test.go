package bench

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
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
		for _, h := range l.hits {
			if want := r.cell(&benchmark{name: fmt.Sprint("Hits/trace=", l.trace, "/entries=", h.entries)}, peer{name: l.peer}).figures(hitsUnit).median; h.ratio != want {
				t.Errorf("%s of %s has %v hits with %v entries, want %v", l.trace, l.peer, h.ratio, h.entries, want)
			}
		}
	}
	if got := strings.Join(got, ", "); got != "oltp freehold, p3 freehold, p3 otter" {
		t.Errorf("lines of %s", got)
	}
	hits("Hits/trace=<b>/entries=4000", map[string]float64{"freehold": 0, "otter": .01})
	if err := writeChart(&out, r); err != nil {
		t.Fatal(err)
	}
	for part, want := range map[string]int{
		`viewBox="0 0 900 262"`: 1, ">p3<": 1, "&lt;b&gt;": 1, ">freehold<": 1, // one legend
		">0.0<": 3, ">0.2<": 3, ">0.8<": 1, // from 0 to a fifth above the most hits
		">10<": 2, ">20<": 1, ">4k<": 1, // the sizes
		`"M14 110 222 10 "`: 1, `"M14 60 222 60 "`: 1, // lines of freehold and otter of p3, the first up to .75 of .8
		`"M14 110h0M222 10h0"`: 1,                     // its dots
		`"M118 160 "`:          1,                     // a single size is in the middle, and no hit at the bottom
		`<g class="c0"`:        4, `<g class="c1"`: 3, // the peers' colors, of legends and lines
		"prefers-color-scheme: dark": 1,
	} {
		if n := strings.Count(out.String(), part); n != want {
			t.Errorf("%d times %s, want %d, in %s", n, part, want, out.String())
		}
	}
	var any struct{}
	if err := xml.Unmarshal(out.Bytes(), &any); err != nil {
		t.Error(err)
	}
}

// The template has the layout of chart.go, and docs/hits.svg was drawn by this template: --chart
// FILE.
func TestChartInDocs(t *testing.T) {
	if !strings.Contains(chartText, fmt.Sprintf(`H%d"`, plotWidth)) || !strings.Contains(chartText, fmt.Sprintf(`x="%d"`, plotWidth/2)) {
		t.Errorf("the template's plots are not %d wide", plotWidth)
	}
	text, err := os.ReadFile("../../docs/hits.svg")
	if err != nil {
		t.Skip(err) // the sources are not here
	}
	style, _, _ := strings.Cut(chartText[strings.Index(chartText, "<style>"):], "</style>")
	if !strings.Contains(strings.ReplaceAll(string(text), "\r\n", "\n"), style) {
		t.Error("docs/hits.svg is not of chart.svg")
	}
}
