// Charts: lines over time. The page's template draws them, and the browser sets the text.

package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// A Chart is lines over seconds, in bytes.
type Chart struct {
	Title string
	Lines []Line
	XMax  float64 // seconds, to give several charts one scale; 0 for the data's
	YMax  float64 // bytes, likewise
}

// A Line is a series over time.
type Line struct {
	Name   string
	Color  string // a class of page.html
	Fill   bool   // the area below it
	Points []Point
}

// A Point is some bytes at a time in seconds.
type Point struct{ X, Y float64 }

// The area between the axes, in units of the template's viewBox.
const (
	chartWidth  = 640
	chartHeight = 220
)

// most returns the ends of the axes.
func (c Chart) most() (x, y float64) {
	x, y = max(c.XMax, 1e-3), max(c.YMax, 1)
	for _, l := range c.Lines {
		for _, p := range l.Points {
			x, y = max(x, p.X), max(y, p.Y)
		}
	}
	return x, y
}

// Path returns a line as SVG draws it.
func (c Chart) Path(l Line) string {
	if len(l.Points) == 0 {
		return ""
	}
	mostX, mostY := c.most()
	x := func(p Point) float64 { return p.X / mostX * chartWidth }
	var path strings.Builder
	path.WriteString("M")
	for _, p := range l.Points {
		fmt.Fprintf(&path, "%.1f %.1f ", x(p), chartHeight*(1-p.Y/mostY))
	}
	if l.Fill {
		fmt.Fprintf(&path, "V%d H%.1f Z", chartHeight, x(l.Points[0]))
	}
	return path.String()
}

// A tick is a label at an axis.
type tick struct {
	At    float64
	Label string
}

// Seconds returns the ticks of the x axis. They are 1, 2 or 5 apart, or 10, 20 or 50, and so on.
func (c Chart) Seconds() (ticks []tick) {
	most, _ := c.most()
	step := 1e-4
	for i := 0; most > 8*step; i++ {
		step *= []float64{2, 2.5, 2}[i%3]
	}
	for x := 0.0; x <= most*(1+1e-9); x += step {
		ticks = append(ticks, tick{x / most * chartWidth, strconv.FormatFloat(x, 'g', 6, 64)})
	}
	return ticks
}

// Bytes returns the ticks of the y axis, a power of two apart.
func (c Chart) Bytes() (ticks []tick) {
	_, most := c.most()
	step := 1.0
	for most > 5*step {
		step *= 2
	}
	for y := 0.0; y <= most; y += step {
		ticks = append(ticks, tick{chartHeight * (1 - y/most), cli.Bytes(int64(y))})
	}
	return ticks
}
