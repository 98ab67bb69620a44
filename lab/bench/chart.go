// Chart: the hit ratios of recorded requests over the sizes of caches, beside one another a trace
// each.

package bench

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

const hitsUnit = "hits/request"

// A hit is a size of a cache, in entries, and its hits a request.
type hit struct{ entries, ratio float64 }

// A trail has the hits of one peer on a trace.
type trail struct {
	trace, peer string
	hits        []hit
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
			all[i].hits = append(all[i].hits, hit{float64(entries), c.figures(hitsUnit).median})
		}
	}
	slices.SortStableFunc(all, func(a, b trail) int { return cmp.Compare(a.trace, b.trace) })
	return all
}

// The layout, in units of the picture's viewBox.
const (
	panelWidth = 300
	plotLeft   = 44  // of a panel, for the labels of the axis
	plotWidth  = 236 // as in chart.svg
	plotHeight = 160
	plotMargin = 14 // left and right of the points
	colors     = 5  // of chart.svg
)

//go:embed chart.svg
var chartText string

var chartTemplate = template.Must(template.New("chart").Parse(chartText))

// A chart is what chart.svg draws: the peers in the order of their colors, and a panel for each
// trace.
type chart struct {
	Peers  []string
	Panels []*panel
}

type panel struct {
	Trace string
	Lines []line
}

type line struct {
	Color int
	hits  []hit
}

// A mark is a label at an axis.
type mark struct {
	At    float64
	Label string
}

// writeChart draws the hits of a run, as SVG.
func writeChart(w io.Writer, r *run) error {
	var c chart
	for _, t := range trails(r) {
		if n := len(c.Panels); n == 0 || c.Panels[n-1].Trace != t.trace {
			c.Panels = append(c.Panels, &panel{Trace: t.trace})
		}
		if !slices.Contains(c.Peers, t.peer) {
			c.Peers = append(c.Peers, t.peer)
		}
		p := c.Panels[len(c.Panels)-1]
		p.Lines = append(p.Lines, line{c.Color(slices.Index(c.Peers, t.peer)), t.hits})
	}
	if len(c.Panels) == 0 {
		return errors.New("no hits to draw: --loads hits, with traces in FREEHOLD_TRACES")
	}
	return chartTemplate.Execute(w, c)
}

func (c chart) Width() int         { return panelWidth * len(c.Panels) }
func (c chart) Left(panel int) int { return panel*panelWidth + plotLeft }

// Color returns the number of a peer's color.
func (c chart) Color(peer int) int { return peer % colors }

// Legend returns the place of a peer's name.
func (c chart) Legend(peer int) int { return plotLeft + 110*peer }

// ends returns the fewest and the most entries of a panel, and a round number of hits above all.
func (p *panel) ends() (fewest, most, top float64) {
	fewest = math.Inf(1)
	for _, l := range p.Lines {
		for _, h := range l.hits {
			fewest, most, top = min(fewest, h.entries), max(most, h.entries), max(top, h.ratio)
		}
	}
	return fewest, most, max(math.Ceil(top*5), 1) / 5
}

// at returns the place of a hit in a panel. Sizes double, so their axis is a logarithmic one.
func (p *panel) at(h hit) hit {
	fewest, most, top := p.ends()
	x := plotWidth / 2.0
	if most > fewest {
		x = plotMargin + math.Log(h.entries/fewest)/math.Log(most/fewest)*(plotWidth-2*plotMargin)
	}
	return hit{math.Round(x*10) / 10, math.Round((1-h.ratio/top)*plotHeight*10) / 10}
}

// Points returns the places of a line's points.
func (p *panel) Points(l line) (all []string) {
	for _, h := range l.hits {
		at := p.at(h)
		all = append(all, fmt.Sprint(at.entries, " ", at.ratio))
	}
	return all
}

// Hits returns the labels of the vertical axis, a fifth apart.
func (p *panel) Hits() (all []mark) {
	_, _, top := p.ends()
	for n := 0.0; n <= math.Round(top*5); n++ {
		all = append(all, mark{p.at(hit{1, n / 5}).ratio, fmt.Sprintf("%.1f", n/5)})
	}
	return all
}

// Entries returns the labels of the other axis: the sizes that were measured.
func (p *panel) Entries() (all []mark) {
	for _, l := range p.Lines {
		for _, h := range l.hits {
			label := fmt.Sprint(h.entries)
			if h.entries >= 1000 {
				label = fmt.Sprint(h.entries/1000) + "k"
			}
			if m := (mark{p.at(h).entries, label}); !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	return all
}
