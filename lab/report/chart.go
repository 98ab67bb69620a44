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
	x, y = c.XMax, c.YMax
	for _, l := range c.Lines {
		for _, p := range l.Points {
			x, y = max(x, p.X), max(y, p.Y)
		}
	}
	return max(x, 1e-3), max(y, 1)
}

// Path returns a line as SVG draws it.
func (c Chart) Path(l Line) string {
	var path strings.Builder
	for i, p := range l.Points {
		x, y := c.at(p)
		if l.Fill && i == 0 {
			fmt.Fprintf(&path, "M%.1f %d", x, chartHeight)
		}
		command := 'L'
		if path.Len() == 0 {
			command = 'M'
		}
		fmt.Fprintf(&path, "%c%.1f %.1f", command, x, y)
		if l.Fill && i == len(l.Points)-1 {
			fmt.Fprintf(&path, "L%.1f %dZ", x, chartHeight)
		}
	}
	return path.String()
}

// at returns where a point is drawn.
func (c Chart) at(p Point) (x, y float64) {
	mostX, mostY := c.most()
	return p.X / mostX * chartWidth, chartHeight * (1 - p.Y/mostY)
}

// A tick is a label at an axis.
type tick struct {
	At    float64
	Label string
}

// Seconds returns the ticks of the x axis, 1, 2 or 5 apart, or such a number of tens.
func (c Chart) Seconds() (ticks []tick) {
	most, _ := c.most()
	step := 1e-4
	for i := 0; most > 8*step; i++ {
		step *= []float64{2, 2.5, 2}[i%3]
	}
	for i := 0.0; i*step <= most*(1+1e-9); i++ {
		x, _ := c.at(Point{X: i * step})
		ticks = append(ticks, tick{x, strconv.FormatFloat(i*step, 'g', 6, 64)})
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
	for i := 0.0; i*step <= most; i++ {
		_, y := c.at(Point{Y: i * step})
		ticks = append(ticks, tick{y, cli.Bytes(int64(i * step))})
	}
	return ticks
}
