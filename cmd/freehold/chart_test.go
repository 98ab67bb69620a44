package main

import (
	"bytes"
	"image/png"
	"slices"
	"strings"
	"testing"
)

func TestChartsWithoutData(t *testing.T) {
	empty := &outcome{}
	one := &outcome{Samples: []sample{{0, 0, 0}}}
	charts := map[string]chart{
		"no samples": sawtoothChart("go", empty),
		"one sample": sawtoothChart("go", one),
		"zero bars":  {Title: "zero", Groups: []string{"a"}, Bars: []bars{{"x", oursC, []float64{0}}}},
	}
	for name, c := range charts {
		t.Run(name, func(t *testing.T) {
			data, err := c.png()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := png.Decode(bytes.NewReader(data)); err != nil {
				t.Error(err)
			}
			svg, err := c.svg()
			if err != nil || strings.Contains(string(svg), "NaN") || strings.Contains(string(svg), "Inf") {
				t.Errorf("%v: %s", err, svg)
			}
		})
	}
}

func TestSVGUsesThePagesColours(t *testing.T) {
	c := sawtoothChart("freehold", &outcome{Samples: []sample{{0, 1 << 30, 0}, {1, 3 << 30, 2 << 30}}})
	svg, err := c.svg()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"var(--ink)", "var(--grid)", "var(--ours)", "var(--live)", ">GiB<", ">seconds<", ">live<", "aria-label=\"freehold: "} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("%s is missing", want)
		}
	}
	for name, rgb := range roles {
		if !strings.Contains(pageText, name+": #") {
			t.Errorf("the page has no %s for %v", name, rgb)
		}
	}
	if strings.Contains(string(svg), "<?xml") || strings.Contains(string(svg), "xmlns") {
		t.Error("an SVG within HTML has a prologue")
	}
}

func TestRoundTicks(t *testing.T) {
	tests := []struct {
		lo, hi float64
		n      int
		want   []string
	}{
		{0, 12.7, 5, []string{"0", "5", "10"}},
		{0, 1, 5, []string{"0", "0.2", "0.4", "0.6", "0.8", "1"}},
		{0, 0.3, 5, []string{"0", "0.1", "0.2", "0.3"}},
		{0, 2200, 5, []string{"0", "500", "1000", "1500", "2000"}},
	}
	for _, tt := range tests {
		var got []string
		for _, tick := range (roundTicks{tt.n}).Ticks(tt.lo, tt.hi) {
			got = append(got, tick.Label)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%v to %v: %q, want %q", tt.lo, tt.hi, got, tt.want)
		}
	}
}

func TestFigure(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.0126: "0.013", 1.234: "1.23", 56.78: "56.8", 123.4: "123", 2103.4: "2,103"} {
		if got := figure(v); got != want {
			t.Errorf("figure(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestThin(t *testing.T) {
	var all []sample
	for i := range 1000 {
		all = append(all, sample{Seconds: float64(i)})
	}
	kept := thin(all, 100)
	if len(kept) != 100 || kept[0] != all[0] || kept[99] != all[999] {
		t.Errorf("%d samples from %v to %v", len(kept), kept[0], kept[len(kept)-1])
	}
	if len(thin(all[:50], 100)) != 50 {
		t.Error("few samples were not all kept")
	}
}
