// Report: the tables that people read.

package bench

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

func report(w io.Writer, m machine, all []*row, r *run, quick bool) {
	reportHead(w, m, r, quick)
	reportRows(w, all)
	for _, title := range titles(r.loads) {
		reportTable(w, title, r)
	}
	if !quick {
		reportTargets(w, judge(r))
	}
	reportNoise(w, r)
}

func reportHead(w io.Writer, m machine, r *run, quick bool) {
	fmt.Fprintf(w, "\nfreehold beside its peers\n\n")
	for _, line := range m.lines() {
		fmt.Fprintf(w, "  %-9s%s\n", line[0], line[1])
	}
	fmt.Fprintf(w, "  %-9s%d samples in %s; medians of %d rounds, interleaved; each sample a fresh process, warmed\n",
		"run", r.taken, r.took.Round(time.Second), r.rounds)
	if quick {
		fmt.Fprintf(w, "\nA smoke test: the loads are too short for their figures to mean anything, so no target is judged.\n")
	}
}

func newTable(w io.Writer, title string) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Style().Options.SeparateRows = false
	t.Style().Options.DrawBorder = false
	t.Style().Format.Header = text.FormatDefault
	if title != "" {
		fmt.Fprintf(w, "\n%s\n", title)
	}
	return t
}

func reportRows(w io.Writer, all []*row) {
	t := newTable(w, "Rows")
	for _, r := range all {
		found := r.version
		if r.skip != "" {
			found = "SKIPPED: " + r.skip
		}
		t.AppendRow(table.Row{r.name, r.what, found})
	}
	t.Render()
}

// titles lists the tables in the order of their first load.
func titles(loads []load) (all []string) {
	for _, l := range loads {
		if !slices.Contains(all, l.table) {
			all = append(all, l.table)
		}
	}
	return all
}

// reportTable prints one table: a line per row, a column per load. A cell is
//
//	8.7 (1.12x)    the median, and how many times the first row's it is
//	8.5..9.1       the least and the most
//	1.03 of one    a load on two goroutines beside the same on one
func reportTable(w io.Writer, title string, r *run) {
	var columns []load
	for _, l := range r.loads {
		if l.table == title {
			columns = append(columns, l)
		}
	}
	t := newTable(w, title)
	head := table.Row{""}
	configs := []table.ColumnConfig{}
	for i, l := range columns {
		head = append(head, l.column)
		configs = append(configs, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.AppendHeader(head)
	t.SetColumnConfigs(configs)
	for _, row := range r.rows {
		line := table.Row{row.name}
		empty := true
		for _, l := range columns {
			c := r.cell(l, row)
			empty = empty && c == nil
			line = append(line, cellText(r, l, row, c))
		}
		if !empty {
			t.AppendRow(line)
		}
	}
	t.Render()
}

func cellText(r *run, l load, w *row, c *cell) string {
	switch {
	case c == nil:
		return "-"
	case c.failed != "":
		return text.WrapSoft("FAILED: "+c.failed, 24)
	case len(c.samples) == 0:
		return "-"
	}
	s := c.spread(l.unit)
	var b strings.Builder
	b.WriteString(l.unit.format(s.Median))
	if c.noisy() {
		b.WriteString("!")
	}
	if first := r.first(l); w != first && l.unit != mallocs && !w.loop {
		fmt.Fprintf(&b, " (%s)", times(ratio(l.unit, c, r.cell(l, first)).Median))
	}
	if s.N > 1 {
		fmt.Fprintf(&b, "\n%s..%s", l.unit.format(s.Min), l.unit.format(s.Max))
	}
	if base := r.cells[l.base][w.name]; base.measured() {
		fmt.Fprintf(&b, "\n%.2f of one", ratio(l.unit, c, base).Median)
	}
	if w.collects && l.unit.timed() && !collected(c) {
		b.WriteString("\nno collection")
	}
	if l.unit == overhead {
		alloc := c.spread(nanoseconds)
		fmt.Fprintf(&b, "\n%.1f ns each", alloc.Median)
	}
	return b.String()
}

// first returns the first row that has a figure on l, to which the others are
// compared.
func (r *run) first(l load) *row {
	for _, w := range r.rows {
		if r.cell(l, w).measured() {
			return w
		}
	}
	return nil
}

// times writes a ratio: 1.12x, 112x.
func times(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.2fx", v)
	}
	return humanize.Comma(int64(v+0.5)) + "x"
}

// collected reports whether the Go collector ran in every sample.
func collected(c *cell) bool {
	return !slices.ContainsFunc(c.samples, func(s sample) bool { return s.GCs == 0 })
}

func reportTargets(w io.Writer, all []verdict) {
	if len(all) == 0 {
		return
	}
	t := newTable(w, "Targets, as ratios of figures in this run")
	t.AppendHeader(table.Row{"freehold's", "figures", "ratio", "least..most", "target", ""})
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 2, Align: text.AlignRight}, {Number: 3, Align: text.AlignRight}, {Number: 4, Align: text.AlignRight},
		{Number: 5, Align: text.AlignRight},
	})
	met, missed := 0, 0
	for _, v := range all {
		is, between, result := figure(v.Value), "", v.Result
		if v.Min < v.Max {
			between = figure(v.Min) + ".." + figure(v.Max)
		}
		switch v.Result {
		case "ok":
			met++
		case "MISSED":
			missed++
		default:
			is = "-"
		}
		if v.Noisy {
			result += ", noisy"
		}
		t.AppendRow(table.Row{v.What, v.Figures, is, between, "<= " + figure(v.Limit), result})
	}
	t.Render()
	fmt.Fprintf(w, "\n%d met, %d missed, %d without a figure\n", met, missed, len(all)-met-missed)
}

// figure writes a ratio of any size.
func figure(v float64) string {
	if v >= 0.1 || v == 0 {
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

func reportNoise(w io.Writer, r *run) {
	fmt.Fprintf(w, `
A cell is the median, how many times the first row's it is (above 1: slower or
larger), and the least and most. Ratios are of figures from the same round, and
the median of those.
`)
	if r.blind {
		fmt.Fprintf(w, "Whether the machine was idle meanwhile was not watched.\n")
		return
	}
	fmt.Fprintf(w, "Other programs used %.1f%% of a processor while samples were taken; %d were taken again,\n%d stayed noisy (marked !).\n",
		100*r.others.share(), r.retaken, r.noisy)
	if r.others.noisy(r.limit) {
		fmt.Fprintf(w, "NOISY RUN: that is more than %.0f%%; these figures are not worth quoting.\n", 100*r.limit)
	}
}
