// Report: the tables that people read.

package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/shirou/gopsutil/v4/host"

	"github.com/freehold-go/freehold/cmd/freehold/report"
	lab "github.com/freehold-go/freehold/lab/run"
)

// onOne is what of a name says how many goroutines there are.
var onOne = regexp.MustCompile(`/goroutines=\d+`)

// A machine is where the figures were taken, and of what.
type machine struct{ cpu, kernel, commit string }

// describe describes the machine. A fact that the system does not tell is "unknown".
func describe(ctx context.Context, all []*program) machine {
	said := func(name string, args ...string) string {
		out, err := exec.CommandContext(ctx, name, args...).Output()
		if err != nil {
			return "unknown"
		}
		return strings.TrimSpace(string(out))
	}
	m := machine{cpu: "unknown", commit: said("git", "rev-parse", "--short=12", "HEAD")}
	for _, p := range all {
		m.cpu = cmp.Or(p.cpu, m.cpu)
	}
	kernel, _ := host.KernelVersionWithContext(ctx)
	m.kernel = cmp.Or(kernel, "unknown")
	if m.commit != "unknown" && said("git", "status", "--porcelain") != "" {
		m.commit += " with changes"
	}
	return m
}

func writeReport(w io.Writer, m machine, all []*program, r *run, quick bool, compared []rival) {
	fmt.Fprintf(w, "\nfreehold beside its peers\n\n")
	for _, line := range [][2]string{
		{"machine", m.cpu + ", " + lab.MachineText() + ", kernel " + m.kernel},
		{"commit", m.commit},
		{"command", strings.Join(append([]string{"go run ./lab"}, os.Args[1:]...), " ")},
		{"run", fmt.Sprintf("%d samples in %s; medians of %d rounds, interleaved; each sample a fresh process, warmed",
			r.taken, r.took.Round(time.Second), r.rounds)},
	} {
		fmt.Fprintf(w, "  %-9s%s\n", line[0], line[1])
	}
	if quick {
		fmt.Fprintf(w, "\nA smoke test: the loads are too short for their figures to mean anything.\n")
	}
	writePrograms(w, all)
	if compared != nil {
		writeBest(w, r, compared)
	}
	for i, b := range r.benchmarks {
		if compared != nil {
			break
		}
		if i == 0 || r.benchmarks[i-1].group != b.group {
			writeGroup(w, b.group, r)
		}
	}
	writeNoise(w, r)
}

func writePrograms(w io.Writer, all []*program) {
	fmt.Fprintf(w, "\nRows\n\n")
	for _, p := range all {
		found := p.allocator
		if p.skip != "" {
			found = "SKIPPED: " + p.skip
		}
		fmt.Fprintf(w, "  %-22s %s\n", p.name, strings.TrimSuffix(p.what+": "+found, ": "))
	}
}

func printGrid(w io.Writer, title string, g report.Grid) {
	fmt.Fprintf(w, "\n%s\n\n", title)
	g.Print(w)
}

// units returns what people compare.
func (s sample) units() (all []string) {
	for _, v := range s.Values {
		if unit := cmp.Or(v.OrigUnit, v.Unit); unit != "gcs" && unit != "cpu-ns/op" && v.Value != 0 || unit == "mallocs/op" {
			all = append(all, unit)
		}
	}
	return all
}

// writeGroup writes a table for each unit of a group's benchmarks: a line per peer, a column per
// benchmark. A cell is
//
//	8.7 (1.12x)    the median, and how many times the first peer's it is
//	8.5..9.1       the least and the most
//	1.03 of one    a load on several goroutines beside the same on one
func writeGroup(w io.Writer, g *group, r *run) {
	var columns []*benchmark
	var names, units []string
	for _, b := range r.benchmarks {
		if b.group != g {
			continue
		}
		columns = append(columns, b)
		for _, p := range b.peers {
			if !slices.Contains(names, p.name) {
				names = append(names, p.name)
			}
			if c := r.cell(b, p); c.measured() {
				units = append(units, c.samples[0].units()...)
			} else if c != nil && c.failed != "" {
				fmt.Fprintf(w, "\nFAILED: %s of %s: %s\n", b.name, p.name, c.failed)
			}
		}
	}
	var done []string
	for _, unit := range units {
		if slices.Contains(done, unit) {
			continue
		}
		done = append(done, unit)
		grid := report.Grid{Head: []string{""}}
		for _, b := range columns {
			grid.Head = append(grid.Head, cmp.Or(strings.ReplaceAll(strings.TrimPrefix(b.name, g.name), "/", " "), " "))
		}
		for _, name := range names {
			row, empty := []string{name}, true
			for _, b := range columns {
				text := "-"
				if i := slices.IndexFunc(b.peers, func(p peer) bool { return p.name == name }); i >= 0 {
					text = cmp.Or(r.cellText(b, b.peers[i], unit), text)
				}
				empty = empty && text == "-"
				row = append(row, text)
			}
			if !empty {
				grid.Add(row...)
			}
		}
		printGrid(w, fmt.Sprintf("%s: %s. %s", g.name, g.what, unit), grid)
	}
}

// cellText returns "" where there is no figure.
func (r *run) cellText(b *benchmark, p peer, unit string) string {
	c := r.cell(b, p)
	if !c.measured() {
		return ""
	}
	s := c.figures(unit)
	if len(s.values) == 0 {
		return ""
	}
	text := figure(unit, s.median)
	if c.noisy() {
		text += "!"
	}
	if first := r.first(b, unit); first != c && !p.loop && unit != "mallocs/op" {
		if than := ratio(unit, c, first); len(than.values) > 0 {
			text += " (" + times(than.median) + ")"
		}
	}
	if len(s.values) > 1 {
		text += "\n" + figure(unit, s.least()) + ".." + figure(unit, s.most())
	}
	if alone := r.cells[onOne.ReplaceAllString(b.name, "/goroutines=1")][p.name]; alone != c && alone.measured() {
		text += fmt.Sprintf("\n%.2f of one", ratio(unit, c, alone).median)
	}
	if p.collects() && unit == "ns/op" && !collected(c) {
		text += "\nno collection"
	}
	return text
}

// first returns the first cell that has a figure on b, to which the others are compared.
func (r *run) first(b *benchmark, unit string) *cell {
	for _, p := range b.peers {
		if c := r.cell(b, p); c.measured() && len(c.figures(unit).values) > 0 {
			return c
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

// collects reports whether the Go collector frees p's blocks.
func (p peer) collects() bool { return p.tags == "peer_goheap" || p.tags == "peer_ristretto" }

// collected reports whether the Go collector ran in every sample.
func collected(c *cell) bool {
	return !slices.ContainsFunc(c.samples, func(s sample) bool {
		n, ok := s.value("gcs")
		return ok && n == 0
	})
}

// figure writes a figure; times of a millisecond and more in ms.
func figure(unit string, v float64) string {
	if unit == "ns/op" && v >= 1e6 {
		return figure("", v/1e6) + " ms"
	}
	switch {
	case v >= 100:
		return humanize.Comma(int64(v + 0.5))
	case v >= 10 || unit == "ns/op":
		return fmt.Sprintf("%.1f", v)
	case v >= 0.1 || v == 0:
		return fmt.Sprintf("%.3f", v)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

func writeNoise(w io.Writer, r *run) {
	fmt.Fprintf(w, `
A cell is the median, how many times the first row's it is (above 1: slower or
larger), and the least and most. Ratios are of figures from the same round, and
the median of those.
`)
	if r.blind {
		fmt.Fprintf(w, "Whether the machine was idle meanwhile was not watched.\n")
		return
	}
	fmt.Fprintf(w, "Other programs used %.1f%% of a processor while samples were taken; %d were noisy (marked !).\n",
		100*r.others.share(), r.noisy)
	if r.others.noisy(r.limit) {
		fmt.Fprintf(w, "NOISY RUN: that is more than %.0f%%; these figures are not worth quoting.\n", 100*r.limit)
	}
}
