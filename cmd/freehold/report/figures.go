// Figures: a measurement is a struct whose fields say how tables and CSV show them.
//
//	Build float64 `json:"build_ms" show:"build, ms" unit:"ms"`
//
//	json   its column in CSV
//	show   its name in tables
//	unit   B (bytes), n (a count), % (a share), x (a ratio), or any other
//
// A value below 0 is unknown.

package report

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

type figure struct {
	column, name, unit string
	text               string // if it is no number
	value              float64
}

// figuresOf returns the fields that are shown, of a struct or a pointer to one.
func figuresOf(v any) (all []figure) {
	s := reflect.Indirect(reflect.ValueOf(v))
	for i := range s.NumField() {
		tag := s.Type().Field(i).Tag
		f := figure{name: tag.Get("show"), unit: tag.Get("unit")}
		f.column, _, _ = strings.Cut(tag.Get("json"), ",")
		switch x := s.Field(i); {
		case f.name == "":
			continue
		case x.Kind() == reflect.String:
			f.text, f.value = x.String(), -1
		case x.Type() == reflect.TypeFor[time.Duration]():
			f.value = time.Duration(x.Int()).Seconds()
		case x.CanInt():
			f.value = float64(x.Int())
		default:
			f.value = x.Float()
		}
		all = append(all, f)
	}
	return all
}

// cell writes a figure for people.
func (f figure) cell() string {
	switch {
	case f.text != "":
		return f.text
	case f.value < 0:
		return "-"
	}
	switch f.unit {
	case "B":
		return cli.Bytes(int64(f.value))
	case "n":
		return humanize.Comma(int64(f.value))
	case "%":
		return Percent(f.value)
	case "x":
		return strconv.FormatFloat(f.value, 'f', 3, 64)
	}
	return Figure(f.value)
}

// A Column is a measurement in a table.
type Column struct {
	Name  string
	Color string // a class of page.html, for its bars
	V     any    // a struct of figures, or a string with the reason why there are none
}

// figures returns the figures of c. If c has none, each figure of like gets c's reason.
func (c Column) figures(like any) []figure {
	why, missing := c.V.(string)
	if !missing {
		return figuresOf(c.V)
	}
	all := figuresOf(like)
	for i := range all {
		all[i].text, all[i].value = why, -1
	}
	return all
}

// Columns is a table with a column for each measurement and a row for each figure of like. title is
// above the figures' names.
func Columns(title string, like any, columns []Column) Grid {
	g := Grid{Head: []string{title}, Colors: []string{""}}
	for _, f := range figuresOf(like) {
		g.Add(f.name)
	}
	for _, c := range columns {
		g.Head, g.Colors = append(g.Head, c.Name), append(g.Colors, c.Color)
		for i, f := range c.figures(like) {
			g.Rows[i] = append(g.Rows[i], Cell{Text: f.cell(), Value: f.value})
		}
	}
	return g
}

// Rows is a table with a row for each measurement. title is above their names.
func Rows[T any](title string, names []string, all []T) Grid {
	var like T
	g := Grid{Head: []string{title}}
	for _, f := range figuresOf(like) {
		g.Head = append(g.Head, f.name)
	}
	for i, one := range all {
		row := []string{names[i]}
		for _, f := range figuresOf(one) {
			row = append(row, f.cell())
		}
		g.Add(row...)
	}
	return g
}

// Names are the columns of figures in CSV.
func Names(like any) (names []string) {
	for _, f := range figuresOf(like) {
		names = append(names, f.column)
	}
	return names
}

// Values are figures in CSV: sizes are in bytes, and durations in seconds. A string is the reason
// why there are none.
func Values(v, like any) (values []string) {
	if _, missing := v.(string); missing {
		return make([]string, len(Names(like)))
	}
	for _, f := range figuresOf(v) {
		text := f.text
		if f.value >= 0 {
			text = strconv.FormatFloat(f.value, 'f', -1, 64)
		}
		values = append(values, text)
	}
	return values
}
