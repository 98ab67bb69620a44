// Figures: a measurement is a struct whose fields say how tables, CSV and charts show them.
//
//	Build float64 `json:"build_ms" show:"build, ms" unit:"ms" bar:"Time, milliseconds/build"`
//
//	json   its column in CSV
//	show   its name in tables
//	unit   ms, s, B, n (a count), % (a share), x (a ratio)
//	bar    a chart and the group in it where its bar is

package report

import (
	"bytes"
	"encoding/csv"
	"image/color"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// Missing takes the place of figures that a run does not have: a word that says why.
type Missing string

type figure struct {
	column, name, unit, bar string
	text                    string // where it is no number
	value                   float64
}

// figuresOf returns the fields that are shown, of a struct or a pointer to one.
func figuresOf(v any) (all []figure) {
	s := reflect.Indirect(reflect.ValueOf(v))
	if s.Kind() != reflect.Struct {
		return nil
	}
	for i := range s.NumField() {
		tag := s.Type().Field(i).Tag
		f := figure{name: tag.Get("show"), unit: tag.Get("unit"), bar: tag.Get("bar")}
		f.column, _, _ = strings.Cut(tag.Get("json"), ",")
		switch x := s.Field(i); {
		case f.name == "":
			continue
		case x.Kind() == reflect.String:
			f.text, f.value = x.String(), math.NaN()
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

// cell writes a figure for people. What is less than 0 is not known.
func (f figure) cell() string {
	switch {
	case f.text != "":
		return f.text
	case f.value < 0 || math.IsNaN(f.value):
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

// cells returns the figure at i of each measurement.
func cells(v []any, i int) (row []string) {
	for _, one := range v {
		if why, ok := one.(Missing); ok {
			row = append(row, string(why))
		} else {
			row = append(row, figuresOf(one)[i].cell())
		}
	}
	return row
}

// some returns the figures of the first measurement, for their names.
func some(v []any) []figure {
	for _, one := range v {
		if _, missing := one.(Missing); !missing {
			return figuresOf(one)
		}
	}
	return nil
}

// Columns is a table with a column for each measurement. title is above the figures' names.
func Columns(title string, names []string, v []any) Grid {
	g := Grid{Head: append([]string{title}, names...)}
	for i, f := range some(v) {
		g.Add(append([]string{f.name}, cells(v, i)...)...)
	}
	return g
}

// Rows is a table with a row for each measurement. title is above their names.
func Rows(title string, names []string, v []any) Grid {
	g := Grid{Head: []string{title}}
	for _, f := range some(v) {
		g.Head = append(g.Head, f.name)
	}
	for i, name := range names {
		row := []string{name}
		for j := range g.Head[1:] {
			row = append(row, cells(v[i:i+1], j)...)
		}
		g.Add(row...)
	}
	return g
}

// CSV is a row for each measurement, after values that say of what it is. Sizes are bytes, and
// durations seconds. A measurement that is missing has empty cells. like is one of their type,
// for when there is none.
func CSV(keys []string, values [][]string, v []any, like any) []byte {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	head := append([]string(nil), keys...)
	for _, f := range figuresOf(like) {
		head = append(head, f.column)
	}
	_ = w.Write(head)
	for i, one := range v {
		row := append([]string(nil), values[i]...)
		for _, f := range figuresOf(one) {
			text := f.text
			if text == "" && f.value >= 0 {
				text = strconv.FormatFloat(f.value, 'f', -1, 64)
			}
			row = append(row, text)
		}
		_ = w.Write(append(row, make([]string, len(head)-len(row))...))
	}
	w.Flush()
	return out.Bytes()
}

// A Series is a measurement in charts.
type Series struct {
	Name  string
	Color color.Color
	V     any
}

// Charts are the bars of all series, a chart for each that fields name.
func Charts(all []Series) (charts []Chart) {
	if len(all) == 0 {
		return nil
	}
	at := map[string]int{}
	for _, s := range all {
		for _, f := range figuresOf(s.V) {
			title, group, ok := strings.Cut(f.bar, "/")
			if !ok {
				continue
			}
			i, known := at[title]
			if !known {
				i = len(charts)
				at[title] = i
				charts = append(charts, Chart{Title: title, Unit: f.unit})
				if f.unit == "B" {
					charts[i].Unit = "MiB"
				}
			}
			c := &charts[i]
			if len(c.Bars) == 0 || c.Bars[len(c.Bars)-1].Name != s.Name {
				c.Bars = append(c.Bars, Bars{Name: s.Name, Color: s.Color})
			}
			if len(c.Bars) == 1 {
				c.Groups = append(c.Groups, group)
			}
			switch f.unit {
			case "B":
				f.value /= 1 << 20
			case "%":
				f.value *= 100
			}
			b := &c.Bars[len(c.Bars)-1]
			b.Values = append(b.Values, max(f.value, 0))
		}
	}
	return charts
}
