// Charts: drawn as SVG for a page.
//
// Colours are roles. Each is a CSS variable in a page, so that the chart follows the reader's
// light or dark theme.

package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"regexp"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The colour roles: Ink for text, grid for lines behind the data, and one for
// each kind of series. None is plain black, which vgsvg leaves out.
var (
	Ink      = color.RGBA{0x24, 0x29, 0x2f, 0xff}
	gridLine = color.RGBA{0xe3, 0xe6, 0xea, 0xff}
	Ours     = color.RGBA{0x0b, 0x7a, 0x75, 0xff} // freehold
	Arena    = color.RGBA{0x57, 0xb8, 0x94, 0xff}
	Pool     = color.RGBA{0x2f, 0x6f, 0xb0, 0xff}
	Theirs   = color.RGBA{0xd9, 0x6c, 0x1e, 0xff} // the Go heap
	Libc     = color.RGBA{0x8a, 0x5a, 0xa8, 0xff}
	Jemalloc = color.RGBA{0xb5, 0x36, 0x4b, 0xff} // jemalloc
	Live     = color.RGBA{0x8c, 0x95, 0x9f, 0xff} // live bytes

	TheirsPale = color.RGBA{0xf0, 0xb2, 0x85, 0xff}
	PoolPale   = color.RGBA{0x9d, 0xc0, 0xe4, 0xff}
)

var roles = map[string]color.RGBA{
	"--ink": Ink, "--grid": gridLine, "--live": Live,
	"--ours": Ours, "--arena": Arena, "--pool": Pool,
	"--theirs": Theirs, "--libc": Libc, "--jemalloc": Jemalloc,
	"--theirs-pale": TheirsPale, "--pool-pale": PoolPale,
}

// ColorOf returns the colour of what is called name: a backend, or live bytes.
func ColorOf(name string) color.RGBA {
	switch name {
	case "freehold":
		return Ours
	case "arena":
		return Arena
	case "pool":
		return Pool
	case "libc":
		return Libc
	case "jemalloc":
		return Jemalloc
	case "live":
		return Live
	default:
		return Theirs
	}
}

// A Chart is lines over time, in bytes, or groups of bars.
type Chart struct {
	Title string
	Lines []Line
	XMax  float64 // seconds, to give several charts one scale; 0 for the data's
	YMax  float64 // bytes, likewise

	Unit   string // of bars
	Groups []string
	Bars   []Bars
}

// A Line is a series over time.
type Line struct {
	Name   string
	Color  color.Color
	Fill   bool // the area below it
	Points plotter.XYs
}

// Bars are one series of bars, a value per group; NaN is no bar.
type Bars struct {
	Name   string
	Color  color.Color
	Values []float64
}

const (
	chartWidth   = 680 * vg.Length(1) // points
	chartHeight  = 290 * vg.Length(1)
	legendHeight = 26 * vg.Length(1)
)

var svgOpen = regexp.MustCompile(`(?s)^.*?<svg[^>]*>`)

// svg draws the chart for a page.
func (c *Chart) svg() (template.HTML, error) {
	canvas := vgsvg.New(chartWidth, chartHeight)
	if err := c.draw(draw.New(canvas)); err != nil {
		return "", err
	}
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return "", fmt.Errorf("drawing %q: %w", c.Title, err)
	}
	// An SVG within HTML needs no prologue and no namespaces, and the page
	// gives its size.
	svg := svgOpen.ReplaceAllLiteralString(out.String(), fmt.Sprintf(
		`<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`,
		chartWidth.Points(), chartHeight.Points(), template.HTMLEscapeString(c.Title)))
	for name, rgb := range roles {
		svg = strings.ReplaceAll(svg, fmt.Sprintf("#%02X%02X%02X", rgb.R, rgb.G, rgb.B), "var("+name+")")
	}
	return template.HTML(svg), nil
}

// draw draws onto the canvas: the legend into a strip at the top and the plot below it.
func (c *Chart) draw(canvas draw.Canvas) error {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	p.Title.Text = ""
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle = label(11)
		axis.Tick.Label = alignedAs(label(10), axis.Tick.Label)
		axis.LineStyle.Color, axis.Tick.LineStyle.Color = gridLine, gridLine
		axis.Padding = 2
	}
	rules := plotter.NewGrid()
	rules.Vertical.Width = 0
	rules.Horizontal = draw.LineStyle{Color: gridLine, Width: vg.Points(0.75)}
	p.Add(rules)

	var err error
	if c.Bars != nil {
		err = c.addBars(p)
	} else {
		err = c.addLines(p)
	}
	if err != nil {
		return fmt.Errorf("drawing %q: %w", c.Title, err)
	}
	c.legend(draw.Crop(canvas, 8, -8, canvas.Max.Y-canvas.Min.Y-legendHeight, 0))
	p.Draw(draw.Crop(canvas, 4, -12, 4, -legendHeight))
	return nil
}

// addLines adds the lines, over seconds, in the binary unit that fits.
func (c *Chart) addLines(p *plot.Plot) error {
	top := c.YMax
	for _, l := range c.Lines {
		for _, pt := range l.Points {
			top = max(top, pt.Y)
		}
	}
	unit, scale := "MiB", float64(1<<20)
	if top >= 1<<30 {
		unit, scale = "GiB", 1<<30
	}
	for _, l := range c.Lines {
		pts := make(plotter.XYs, len(l.Points))
		for i, pt := range l.Points {
			pts[i] = plotter.XY{X: pt.X, Y: pt.Y / scale}
		}
		pl, err := plotter.NewLine(pts)
		if err != nil {
			return err
		}
		pl.LineStyle = draw.LineStyle{Color: l.Color, Width: vg.Points(1.6)}
		if l.Fill {
			r, g, b, _ := l.Color.RGBA()
			pl.FillColor = color.NRGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 0x38}
			pl.LineStyle.Width = vg.Points(0.8)
		}
		p.Add(pl)
	}
	p.X.Label.Text, p.Y.Label.Text = "seconds", unit
	p.X.Min, p.Y.Min = 0, 0
	p.X.Max = max(p.X.Max, c.XMax)
	p.Y.Max = max(top/scale*1.06, 1e-3)
	p.X.Tick.Marker, p.Y.Tick.Marker = roundTicks{8}, roundTicks{7}
	return nil
}

// addBars adds groups of bars side by side, each with its value above it.
func (c *Chart) addBars(p *plot.Plot) error {
	const plotWidth, gap = chartWidth * 0.78, 3 // without the axis, and without the space between groups
	width := min(34, plotWidth/vg.Length(len(c.Groups)*len(c.Bars))-gap)
	var top float64
	size := vg.Length(10) // of the values, each of which keeps to its own bar
	for _, b := range c.Bars {
		for _, v := range b.Values {
			if !math.IsNaN(v) {
				top = max(top, v)
				size = min(size, width/label(1).Width(shortFigure(v)))
			}
		}
	}
	for i, b := range c.Bars {
		heights := make(plotter.Values, len(b.Values))
		var at plotter.XYLabels
		for g, v := range b.Values {
			if math.IsNaN(v) {
				continue
			}
			heights[g] = v
			at.XYs = append(at.XYs, plotter.XY{X: float64(g), Y: v})
			at.Labels = append(at.Labels, shortFigure(v))
		}
		if len(at.XYs) == 0 {
			continue
		}
		pb, err := plotter.NewBarChart(heights, width)
		if err != nil {
			return err
		}
		pb.Color, pb.LineStyle.Width = b.Color, 0
		pb.Offset = (width + gap) * vg.Length(float64(i)-float64(len(c.Bars)-1)/2)
		p.Add(pb)

		values, err := plotter.NewLabels(at)
		if err != nil {
			return err
		}
		for j := range values.TextStyle {
			values.TextStyle[j] = label(size)
			values.TextStyle[j].XAlign = text.XCenter
		}
		values.Offset = vg.Point{X: pb.Offset, Y: 3}
		p.Add(values)
	}
	p.NominalX(c.Groups...)
	p.X.Tick.Label = alignedAs(label(11), p.X.Tick.Label)
	p.X.Min, p.X.Max = -0.5, float64(len(c.Groups))-0.5
	p.Y.Label.Text = c.Unit
	p.Y.Min, p.Y.Max = 0, max(top*1.12, 1e-3)
	p.Y.Tick.Marker = roundTicks{5}
	return nil
}

// legend draws a mark and a name for each series, side by side.
func (c *Chart) legend(strip draw.Canvas) {
	type entry struct {
		name  string
		color color.Color
	}
	var entries []entry
	for _, l := range c.Lines {
		entries = append(entries, entry{l.Name, l.Color})
	}
	for _, b := range c.Bars {
		entries = append(entries, entry{b.Name, b.Color})
	}
	style := label(11)
	style.YAlign = text.YCenter
	x, y := strip.Min.X+vg.Points(36), strip.Min.Y+(strip.Max.Y-strip.Min.Y)/2
	for _, e := range entries {
		const size = 9
		strip.FillPolygon(e.color, []vg.Point{{X: x, Y: y - size/2}, {X: x + size, Y: y - size/2}, {X: x + size, Y: y + size/2}, {X: x, Y: y + size/2}})
		x += size + 5
		strip.FillText(style, vg.Point{X: x, Y: y}, e.name)
		x += style.Width(e.name) + 18
	}
}

// label returns the style of text on a chart.
func label(points vg.Length) text.Style {
	return text.Style{
		Color:   Ink,
		Font:    font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, points),
		Handler: plot.DefaultTextHandler,
	}
}

// alignedAs returns style with other's alignment.
func alignedAs(style, other text.Style) text.Style {
	style.XAlign, style.YAlign, style.Rotation = other.XAlign, other.YAlign, other.Rotation
	return style
}

// roundTicks places about n ticks at round values, each with a label.
type roundTicks struct{ n int }

func (r roundTicks) Ticks(lo, hi float64) (ticks []plot.Tick) {
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/float64(r.n))))
	for _, f := range []float64{1, 2, 5, 10} {
		if (hi-lo)/(step*f) <= float64(r.n) {
			step *= f
			break
		}
	}
	for i := math.Ceil(lo / step); i*step <= hi*(1+1e-9); i++ {
		v := i * step
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%.6g", math.Round(v*1e9)/1e9)})
	}
	return ticks
}
