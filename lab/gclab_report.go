package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// gclabReport is a run of gclab as text, CSV, PNG and HTML. All of them show as much
// as was measured.
type gclabReport struct {
	load        labLoad
	began       time.Time
	outcomes    []labOutcome
	interrupted bool
}

// what describes the load in a line.
func (r *gclabReport) what() string {
	return fmt.Sprintf("%s live; %s that allocate %s at a time for %v",
		cli.Bytes(r.load.Live), cli.Plural(r.load.Workers, "worker"), cli.Bytes(r.load.Array), r.load.Time)
}

// sections are the outcomes by shape.
func (r *gclabReport) sections() (all []section) {
	for _, s := range shapes {
		var own []labOutcome
		for _, o := range r.outcomes {
			if o.run.shape.name == s.name {
				own = append(own, o)
			}
		}
		if len(own) > 0 {
			all = append(all, labSection(s, r.load, own))
		}
	}
	return all
}

// labSection is what the outcomes of one shape show.
func labSection(s shape, l labLoad, outcomes []labOutcome) section {
	sec := section{Title: shapeTitle(s), Grids: []grid{labGrid(s, l, outcomes)}, Result: labResult(s, l, outcomes)}
	told := map[string]bool{}
	for _, o := range outcomes {
		if st := o.run.store; !told[st.memory] {
			told[st.memory] = true
			sec.Notes = append(sec.Notes, memoryTitle(st.memory)+": "+st.about+".")
		}
	}
	for _, o := range outcomes {
		if o.refused != nil {
			sec.Notes = append(sec.Notes, "refused: "+o.refused.Error()+".")
		}
		if o.figures.Stopped != "" {
			sec.Notes = append(sec.Notes, "stopped: "+o.run.title()+": "+o.figures.Stopped+".")
		}
	}
	return sec
}

// shapeTitle is the shape's title as a heading.
func shapeTitle(s shape) string { return string(s.title[0]-'a'+'A') + s.title[1:] }

// measured reports whether there are figures of a load.
func (o *labOutcome) measured() bool { return o.refused == nil && o.figures.Seconds > 0 }

// labGrid is the table of the outcomes.
func labGrid(s shape, l labLoad, outcomes []labOutcome) grid {
	g := grid{Head: []string{fmt.Sprintf("%s, %s entries", s.title, humanize.Comma(int64(s.entries(l.Live))))}}
	for _, o := range outcomes {
		g.Head = append(g.Head, memoryTitle(o.run.store.memory)+" "+o.run.tuning)
	}
	row := func(name string, cell func(f labFigures) string) {
		cells := []string{name}
		for _, o := range outcomes {
			switch {
			case o.measured():
				cells = append(cells, cell(o.figures))
			case o.refused != nil:
				cells = append(cells, "refused")
			default:
				cells = append(cells, "stopped")
			}
		}
		g.add(cells...)
	}
	row("collector, % CPU", func(f labFigures) string { return percent(f.Collector) })
	row("collections", func(f labFigures) string { return humanize.Comma(int64(f.Cycles)) })
	row("worst pause, ms", func(f labFigures) string { return figure(f.Pause) })
	row("99% of turns, ms", func(f labFigures) string { return figure(f.Late) })
	row("worst turn, ms", func(f labFigures) string { return figure(f.Worst) })
	row("arrays a second", func(f labFigures) string { return figure(f.Arrays) })
	row("largest goal", func(f labFigures) string { return cli.Bytes(f.Goal) })
	row("resident, peak", func(f labFigures) string { return cli.Bytes(f.PeakRSS) })
	row("live", func(f labFigures) string { return cli.Bytes(f.Live) })
	row("of that off-heap", func(f labFigures) string { return cli.Bytes(f.OffHeap) })
	row("build, s", func(f labFigures) string { return figure(f.Build / 1000) })
	return g
}

// percent writes a share as a percentage.
func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) }

// labResult compares the memories, each setting of the collector by itself.
func labResult(s shape, l labLoad, outcomes []labOutcome) string {
	where := map[string]string{"go": "on the Go heap", "flat": "there without pointers", "freehold": "on freehold"}
	var all []string
	for _, tuning := range tunings {
		var parts []string
		for _, o := range outcomes {
			if !o.measured() || o.run.tuning != tuning {
				continue
			}
			text := "%s %s%%, %s and %s"
			if len(parts) == 0 {
				text = "%s %s%% of the processors' time go to the collector, the worst turn takes %s, and workers fill %s arrays a second"
			}
			f := o.figures
			parts = append(parts, fmt.Sprintf(text, where[o.run.store.memory], percent(f.Collector), duration(f.Worst), figure(f.Arrays)))
		}
		if len(parts) > 0 {
			all = append(all, fmt.Sprintf("%s, %s live, %s: %s.", shapeTitle(s), cli.Bytes(l.Live), tuning, strings.Join(parts, "; ")))
		}
	}
	if len(all) == 0 {
		return fmt.Sprintf("%s, %s live: see the table.", shapeTitle(s), cli.Bytes(l.Live))
	}
	return strings.Join(all, " ")
}

// labNotes explain the figures.
func labNotes(l labLoad) []string {
	return []string{
		"default: GOGC=100. With the data off-heap the goal is then a few arrays, and collections are many and short.",
		fmt.Sprintf("limit: GOGC=off, and GOMEMLIMIT is what is live on the Go heap and as much again, at least %s.", cli.Bytes(l.Headroom)),
		fmt.Sprintf("A turn is due each %v and allocates %s in small objects; its time is from when it was due until it is done, and includes the wait for a processor.", turnEvery, cli.Bytes(turnBytes)),
		"collector: until the end of the last collection, all processors together. The load goes on until a collection that has begun is done. A pause stops all goroutines.",
		"goal: the size of the Go heap at which the collector wants to be done.",
	}
}

// print writes the tables.
func (r *gclabReport) print(w io.Writer) {
	sections := r.sections()
	for _, sec := range sections {
		fmt.Fprintln(w, "\n"+cli.Strong(w, sec.Title)+"\n")
		for _, g := range sec.Grids {
			g.print(w)
		}
		for _, n := range sec.Notes {
			fmt.Fprintln(w, wrapped(w, "  - ", n))
		}
	}
	if len(sections) > 0 {
		fmt.Fprintln(w)
		for _, sec := range sections {
			fmt.Fprintln(w, cli.Strong(w, wrapped(w, "", sec.Result)))
		}
		for _, n := range labNotes(r.load) {
			fmt.Fprintln(w, wrapped(w, "- ", n))
		}
	}
	if r.interrupted {
		fmt.Fprintf(w, "Interrupted after %s.\n", cli.Plural(len(r.outcomes), "measurement"))
	}
}

// failure returns an error if a run was stopped.
func (r *gclabReport) failure() error {
	var all []error
	for _, o := range r.outcomes {
		if o.figures.Stopped != "" {
			all = append(all, fmt.Errorf("stopped, %s, %s: %s", o.run.shape.title, o.run.title(), o.figures.Stopped))
		}
	}
	return errors.Join(all...)
}

// write writes the files that were asked for.
func (r *gclabReport) write(files outFiles) error {
	return errors.Join(
		files["--csv"].write(r.csv()),
		files.render("--png", func() ([]byte, error) { return pngOf(r.charts()) }),
		files.render("--html", func() ([]byte, error) { return r.page().html() }),
	)
}

// csv is a row per run. Sizes are bytes, times seconds; what was not measured is
// empty.
func (r *gclabReport) csv() []byte {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	float := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	_ = w.Write([]string{
		"data", "memory", "tuning", "entries", "outcome", "collector_share", "collections", "pause_s", "turn_p99_s", "turn_worst_s",
		"arrays_per_s", "goal", "peak_rss", "live", "off_heap", "build_s", "load_s",
	})
	for _, o := range r.outcomes {
		f := o.figures
		row := []string{o.run.shape.name, o.run.store.memory, o.run.tuning, strconv.Itoa(o.run.shape.entries(r.load.Live)), "measured"}
		switch {
		case o.refused != nil:
			row[4] = "refused"
		case f.Stopped != "":
			row[4] = "stopped"
		}
		if o.measured() {
			row = append(row, float(f.Collector), strconv.Itoa(f.Cycles), float(f.Pause/1000), float(f.Late/1000), float(f.Worst/1000),
				float(f.Arrays), number(f.Goal), number(f.PeakRSS), number(f.Live), number(f.OffHeap), float(f.Build/1000), float(f.Seconds))
		} else {
			row = append(row, make([]string, 12)...)
		}
		_ = w.Write(row)
	}
	w.Flush()
	return out.Bytes()
}

// charts compare all that was measured.
func (r *gclabReport) charts() []chart { return labCharts(r.outcomes) }

// labCharts has a group of bars for each shape, a bar for each memory and tuning.
func labCharts(outcomes []labOutcome) []chart {
	charts := []chart{
		{Title: "Collector, % of all processors' time (less is better)", Unit: "%"},
		{Title: "Worst turn, milliseconds (less is better)", Unit: "ms"},
		{Title: "Arrays that workers fill per second (more is better)", Unit: "arrays/s"},
		{Title: "Resident memory at the peak, GiB", Unit: "GiB"},
	}
	values := func(f labFigures) []float64 {
		return []float64{100 * f.Collector, f.Worst, f.Arrays, float64(f.PeakRSS) / (1 << 30)}
	}
	var groups []string
	for _, s := range shapes {
		for _, o := range outcomes {
			if o.run.shape.name == s.name {
				groups = append(groups, s.name)
				break
			}
		}
	}
	for _, m := range memories {
		for _, tuning := range tunings {
			series := make([][]float64, len(charts))
			any := false
			for _, g := range groups {
				figures := []float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
				for _, o := range outcomes {
					if o.measured() && o.run.name() == g+"/"+m.name+"/"+tuning {
						figures, any = values(o.figures), true
					}
				}
				for c := range charts {
					series[c] = append(series[c], figures[c])
				}
			}
			for c := range charts {
				charts[c].Groups = groups
				if any {
					charts[c].Bars = append(charts[c].Bars, bars{m.title + ", " + tuning, labColor(m.name, tuning), series[c]})
				}
			}
		}
	}
	return charts
}

// labColor is pale for the default settings of the collector.
func labColor(memory, tuning string) color.RGBA {
	pale := tuning == tuningDefault
	switch {
	case memory == "freehold" && pale:
		return arenaC
	case memory == "freehold":
		return oursC
	case memory == "flat" && pale:
		return poolPaleC
	case memory == "flat":
		return poolC
	case pale:
		return theirsPaleC
	default:
		return theirsC
	}
}

func (r *gclabReport) page() *page {
	p := &page{
		Title: "What live data costs the collector",
		Lead:  r.what() + ".",
		Facts: append([]string{machineText(), version(), r.began.Format("2006-01-02 15:04"), "Each measurement ran in a process of its own."}, labNotes(r.load)...),
	}
	all := section{Title: "All of them", Charts: r.charts()}
	if len(all.Charts) > 0 && len(all.Charts[0].Bars) > 0 {
		p.Sections = append(p.Sections, all)
	}
	p.Sections = append(p.Sections, r.sections()...)
	return p
}
