package report

import (
	"encoding/xml"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

func linesOf(points ...plotter.XY) Chart {
	return Chart{Title: "freehold: memory", Lines: []Line{{Name: "live", Color: Live, Fill: true, Points: points}, {Name: "resident", Color: Ours, Points: points}}}
}

func TestChartsWithoutData(t *testing.T) {
	for name, c := range map[string]Chart{
		"no samples": linesOf(),
		"one sample": linesOf(plotter.XY{}),
		"zero bars":  {Title: "zero", Groups: []string{"a"}, Bars: []Bars{{"x", Ours, []float64{0}}}},
	} {
		svg, err := c.svg()
		if err != nil || strings.Contains(string(svg), "NaN") || strings.Contains(string(svg), "Inf") {
			t.Errorf("%s: %v: %s", name, err, svg)
		}
	}
}

func TestSVGUsesThePagesColours(t *testing.T) {
	c := linesOf(plotter.XY{X: 0, Y: 1 << 30}, plotter.XY{X: 1, Y: 3 << 30})
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
		if got := Figure(v); got != want {
			t.Errorf("Figure(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestShortFigure(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.0049: "<.01", 0.02: "0.02", 9.994: "9.99", 9.996: "10.0", 56.78: "56.8", 99.96: "100",
		1357.7: "1358", 9999.6: "10k", 123456: "123k", 1.2e6: "1M",
	} {
		if got := shortFigure(v); got != want || len(got) > 4 {
			t.Errorf("shortFigure(%v) = %q, want %q", v, got, want)
		}
	}
}

// A textBox is where a chart has text, y growing downwards.
type textBox struct {
	text                     string
	left, right, top, bottom float64
}

// textBoxes finds all text in an SVG.
func textBoxes(t *testing.T, svg string) (all []textBox) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "text" {
			continue
		}
		var x, y, size float64
		for _, a := range start.Attr {
			switch a.Name.Local {
			case "x":
				x, err = strconv.ParseFloat(a.Value, 64)
			case "y":
				y, err = strconv.ParseFloat(a.Value, 64)
			case "style":
				_, value, _ := strings.Cut(a.Value, "font-size:")
				value, _, _ = strings.Cut(value, "px")
				size, err = strconv.ParseFloat(value, 64)
			case "transform":
				if strings.Contains(a.Value, "rotate") {
					size = math.NaN() // the label of the upright axis, which nothing is near
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		var content string
		if err := d.DecodeElement(&content, &start); err != nil {
			t.Fatal(err)
		}
		if size > 0 {
			style := label(vg.Length(size))
			all = append(all, textBox{content, x, x + style.Width(content).Points(), y - size*0.7, y})
		}
	}
}

func TestChartTextsDoNotTouch(t *testing.T) {
	barsOf := func(values ...float64) Chart {
		c := Chart{Title: "bars", Unit: "ms", Groups: []string{"build", "walk", "free", "one collection", "its CPU time"}}
		for i, name := range []string{"Go heap", "freehold", "arena", "pool", "libc", "jemalloc"} {
			b := Bars{Name: name, Color: ColorOf(name)}
			for g := range c.Groups {
				b.Values = append(b.Values, values[(i+g)%len(values)])
			}
			c.Bars = append(c.Bars, b)
		}
		return c
	}
	for name, c := range map[string]Chart{
		"alike":        barsOf(0.020, 38.2, 30.9, 0.021),
		"wide":         barsOf(12345, 11111, 12222, 0),
		"a minute":     barsOf(88888.8),
		"small":        barsOf(0.004, 0.001, 9.99),
		"with gaps":    barsOf(98765, math.NaN(), 3),
		"long and big": linesOf(plotter.XY{X: 0, Y: 1 << 30}, plotter.XY{X: 123456, Y: 3000 << 30}),
	} {
		svg, err := c.svg()
		if err != nil {
			t.Fatal(err)
		}
		all := textBoxes(t, string(svg))
		if len(all) < 12 {
			t.Errorf("%s: only %d texts were found", name, len(all))
		}
		for i, a := range all {
			if a.left < 0 || a.right > chartWidth.Points() {
				t.Errorf("%s: %q reaches out of the chart", name, a.text)
			}
			for _, b := range all[:i] {
				if a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom {
					t.Errorf("%s: %q lies over %q", name, a.text, b.text)
				}
			}
		}
	}
}

func TestDuration(t *testing.T) {
	for ms, want := range map[float64]string{0: "0 ms", 0.004: "0.004 ms", 42: "42.0 ms", 999: "999 ms", 1000: "1.0 s", 90_000: "90.0 s"} {
		if got := Duration(ms); got != want {
			t.Errorf("%v is %q, want %q", ms, got, want)
		}
	}
}
