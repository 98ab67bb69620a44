// Chart: the hit ratios of recorded requests over the sizes of caches, beside one another a trace each.

package bench

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	hitsUnit    = "hits/request"
	panelWidth  = 3.2 * vg.Inch
	panelHeight = 2.8 * vg.Inch
)

// A trail has the hits of one peer on a trace.
type trail struct {
	trace, peer string
	points      plotter.XYs // entries, hits a request
}

// trails returns the trails of a run, by traces, then in the order of peers.
func trails(r *run) (all []trail) {
	for _, b := range r.benchmarks {
		at, isHits := strings.CutPrefix(b.name, "Hits/trace=")
		trace, size, _ := strings.Cut(at, "/entries=")
		entries, err := strconv.Atoi(size)
		if !isHits || err != nil {
			continue
		}
		for _, p := range b.peers {
			c := r.cell(b, p)
			if !c.measured() {
				continue
			}
			i := slices.IndexFunc(all, func(t trail) bool { return t.trace == trace && t.peer == p.name })
			if i < 0 {
				i = len(all)
				all = append(all, trail{trace: trace, peer: p.name})
			}
			all[i].points = append(all[i].points, plotter.XY{X: float64(entries), Y: c.figures(hitsUnit).median})
		}
	}
	slices.SortStableFunc(all, func(a, b trail) int { return cmp.Compare(a.trace, b.trace) })
	return all
}

// writeChart draws the hits of a run, as SVG.
func writeChart(w io.Writer, r *run) error {
	var panels []*plot.Plot
	var colors []string // of peers
	for _, t := range trails(r) {
		if len(panels) == 0 || panels[len(panels)-1].Title.Text != t.trace {
			p := plot.New()
			p.Title.Text, p.X.Label.Text, p.Y.Label.Text = t.trace, "entries that the bound has room for", "hits a request"
			p.Y.Min = 0
			panels = append(panels, p)
		}
		if !slices.Contains(colors, t.peer) {
			colors = append(colors, t.peer)
		}
		line, dots, err := plotter.NewLinePoints(t.points)
		if err != nil {
			return err
		}
		color := slices.Index(colors, t.peer)
		line.Color, dots.Color, dots.Shape = plotutil.Color(color), plotutil.Color(color), plotutil.Shape(color)
		p := panels[len(panels)-1]
		p.Add(line, dots)
		p.Legend.Add(t.peer, line, dots)
	}
	if len(panels) == 0 {
		return errors.New("no hits to draw: --loads hits, with traces in FREEHOLD_TRACES")
	}
	canvas, err := draw.NewFormattedCanvas(panelWidth*vg.Length(len(panels)), panelHeight, "svg")
	if err != nil {
		return err
	}
	tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadX: vg.Points(12), PadTop: vg.Points(6), PadRight: vg.Points(10)}
	for i, row := range plot.Align([][]*plot.Plot{panels}, tiles, draw.New(canvas))[0] {
		panels[i].Draw(row)
	}
	_, err = canvas.WriteTo(w)
	return err
}
