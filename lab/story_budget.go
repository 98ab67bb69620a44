package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"image/color"
	"slices"
	"strconv"

	"github.com/dustin/go-humanize"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"gonum.org/v1/plot/plotter"
)

// budgetStory is a container's limit with and without a budget.
type budgetStory struct{}

func (budgetStory) name() string  { return "budget" }
func (budgetStory) title() string { return "A memory limit" }
func (budgetStory) why() string {
	return "A container that takes more memory than its limit is killed. GOMEMLIMIT keeps Go's heap within it, but does not count off-heap memory. A budget counts both."
}

// backends implements story.
func (budgetStory) backends() (all, usual []string) {
	all = []string{freeholdBackend.name}
	return all, all
}

// measurements implements story.
func (budgetStory) measurements(set settings) int { return len(set.Box.runs()) }

// boxModes are all ways to keep to a limit.
var boxModes = []string{boxDefault, boxLimit, boxBudget}

const mostBoxRuns = 10_000 // of each load

// check says what is wrong with the story's settings, before anything runs.
func (budgetStory) check(s boxSettings) error {
	for _, limit := range s.Limits {
		if limit < 64<<20 {
			return cli.Usagef("--limits %s: at least 64 MiB are needed", cli.Bytes(limit))
		}
		if total, _ := machineMemory(); total > 0 && limit > total/4*3 {
			return cli.Usagef("--limits %s: more than three quarters of the %s of memory", cli.Bytes(limit), cli.Bytes(total))
		}
	}
	for _, share := range s.Shares {
		if share < 1 || share > 99 {
			return cli.Usagef("--shares %d: a share is 1 to 99 percent", share)
		}
	}
	if s.Runs < 1 {
		return cli.Usagef("--runs %d: at least one is needed", s.Runs)
	}
	if s.Runs > mostBoxRuns {
		return cli.Usagef("--runs %d: more than %d", s.Runs, mostBoxRuns)
	}
	for _, limit := range s.Limits {
		if s.Live >= limit {
			return cli.Usagef("--go-live %s: it must be below the limit of %s", cli.Bytes(s.Live), cli.Bytes(limit))
		}
	}
	return nil
}

// measure implements story: what it measures is the name of a run.
func (budgetStory) measure(ctx context.Context, set settings, name string, report func(float64)) (any, error) {
	r, err := boxRunNamed(name)
	if err != nil {
		return nil, err
	}
	s := set.Box
	if s.Kind == boxNone {
		return s.measure(ctx, r, nil, report)
	}
	b, err := newBox(r.Limit)
	if err != nil {
		return nil, err
	}
	o, err := s.measure(ctx, r, b, report)
	return o, errors.Join(err, b.remove())
}

// A boxResult is a run and its outcome.
type boxResult struct {
	run boxRun
	boxOutcome
}

// tell implements story.
func (b budgetStory) tell(ctx context.Context, set settings, run runner) (section, error) {
	var results []boxResult
	for _, r := range set.Box.runs() {
		res := boxResult{run: r}
		if err := run(ctx, b, r.name(), &res.boxOutcome); err != nil {
			return section{}, err
		}
		results = append(results, res)
	}
	sec := section{Grids: []grid{boxGrid(results)}, Charts: boxCharts(results), Result: boxFinding(results), CSV: boxCSV(results)}
	if set.Box.Kind == boxNone {
		sec.Notes = append(sec.Notes, "There was no box: nothing is killed, and a peak above the limit is shown as over.")
	} else {
		sec.Notes = append(sec.Notes, "Each run was in a control group of its own with the limit, without swap.")
	}
	if slices.ContainsFunc(results, func(r boxResult) bool { return r.Result == boxStruck }) {
		sec.Notes = append(sec.Notes, "A run that was struck was killed, but not for its limit: the machine may have no memory left.")
	}
	l := set.Box.load(boxRun{Limit: set.Box.Limits[0], Share: set.Box.Shares[0]})
	sec.Notes = append(sec.Notes,
		fmt.Sprintf("Goroutines replace nodes of a table on the Go heap and compute with them, while off-heap blocks are allocated up to the share, half of them freed, and allocated again. At %s and %d%% the Go heap has %s live.", cli.Bytes(set.Box.Limits[0]), set.Box.Shares[0], cli.Bytes(l.Live)),
		boxLimit+": GOGC=off and nine tenths of the limit. "+boxBudget+": budget.Start(nil).",
		"The peak is resident memory without pages of files. A run that was killed shows how much of its load was done. Nodes, M/s: millions of nodes replaced a second.")
	return sec, nil
}

// boxGrid is the table of the runs.
func boxGrid(results []boxResult) grid {
	g := grid{Head: []string{"limit, off-heap, with", "result", "peak", "of limit %", "collections", "collector, % CPU", "failed allocs", "s", "nodes, M/s"}}
	for _, r := range results {
		last := r.last()
		result := r.Result
		if result != boxFinished && result != boxOver {
			result += fmt.Sprintf(" at %.0f%%", 100*last.Done)
		}
		rate := 0.0
		if last.Seconds > 0 {
			rate = float64(last.Nodes) / last.Seconds / 1e6
		}
		g.add(fmt.Sprintf("%s, %d%%, %s", cli.Bytes(r.run.Limit), r.run.Share, r.run.Mode), result,
			cli.Bytes(r.Peak), percent(float64(r.Peak)/float64(r.run.Limit)), humanize.Comma(last.Cycles), percent(last.Collector),
			strconv.Itoa(last.Failed), figure(r.Seconds), figure(rate))
	}
	return g
}

// boxFinding is what the runs show, in a sentence or two.
func boxFinding(results []boxResult) string {
	text := ""
	for _, mode := range boxModes {
		runs, finished, worst := 0, 0, 0.0
		for _, r := range results {
			if r.run.Mode != mode {
				continue
			}
			runs++
			if r.Result == boxFinished {
				finished++
			}
			worst = max(worst, float64(r.Peak)/float64(r.run.Limit))
		}
		if runs > 0 {
			text += fmt.Sprintf("With %s, %d of %s finished; the peak was %s%% of the limit. ", boxPhrase(mode), finished, cli.Plural(runs, "run"), percent(worst))
		}
	}
	return text + boxPrice(results)
}

// boxPrice is what a budget costs: beside another mode over the runs that finished with both,
// or by itself if there are none.
func boxPrice(results []boxResult) (text string) {
	finished := map[boxRun]boxResult{}
	for _, r := range results {
		if r.Result == boxFinished || r.Result == boxOver {
			finished[r.run] = r
		}
	}
	var seconds, share span
	for run, r := range finished {
		if run.Mode == boxBudget {
			seconds.add(r.Seconds)
			share.add(r.last().Collector)
		}
	}
	for _, other := range boxModes[:len(boxModes)-1] {
		var times, ours, theirs span
		for run, r := range finished {
			run.Mode = boxBudget
			b, both := finished[run]
			if r.run.Mode != other || !both || r.Seconds == 0 {
				continue
			}
			times.add(b.Seconds / r.Seconds)
			ours.add(b.last().Collector)
			theirs.add(r.last().Collector)
		}
		if times.n > 0 {
			text += fmt.Sprintf("Where both finished, a budget took %s times as long as %s; the collector took %s%% of the processors' time with it, and %s%% with %s. ",
				times.text(figure), other, ours.text(percent), theirs.text(percent), other)
		}
	}
	if text == "" && seconds.n > 0 {
		text = fmt.Sprintf("With a budget a run took %s s, and the collector %s%% of the processors' time. ", seconds.text(figure), share.text(percent))
	}
	return text
}

// boxPhrase is a mode within a sentence.
func boxPhrase(mode string) string {
	if mode == boxBudget {
		return "a " + mode
	}
	return mode
}

// A span is the smallest and the largest of n values.
type span struct {
	low, high float64
	n         int
}

func (s *span) add(v float64) {
	if s.n == 0 {
		s.low, s.high = v, v
	}
	s.low, s.high, s.n = min(s.low, v), max(s.high, v), s.n+1
}

func (s *span) text(written func(float64) string) string {
	low, high := written(s.low), written(s.high)
	if low == high {
		return low
	}
	return low + " to " + high
}

// boxCharts are the first run of each kind, over time.
func boxCharts(results []boxResult) (charts []chart) {
	for _, r := range results {
		if r.run.Run != 1 || len(r.Samples) == 0 {
			continue
		}
		over := func(name string, c color.Color, fill bool, value func(boxSample) int64) line {
			l := line{Name: name, Color: c, Fill: fill}
			for _, x := range r.Samples {
				l.Points = append(l.Points, plotter.XY{X: x.Seconds, Y: float64(value(x))})
			}
			return l
		}
		c := chart{
			Title: fmt.Sprintf("%s, %d%% off-heap, with %s: %s", cli.Bytes(r.run.Limit), r.run.Share, r.run.Mode, r.Result),
			XMax:  longestBoxRun(results, r.run),
			YMax:  float64(r.run.Limit) * 1.1,
			Lines: []line{
				over("Go heap", theirsC, true, func(x boxSample) int64 { return x.Go }),
				over("off-heap", oursC, true, func(x boxSample) int64 { return x.OffHeap }),
				over("Go heap + off-heap", ink, false, func(x boxSample) int64 { return x.Go + x.OffHeap }),
			},
		}
		if r.run.Mode != boxDefault { // which has none
			c.Lines = append(c.Lines, over("GOMEMLIMIT as set", poolC, false, func(x boxSample) int64 { return x.Limit }))
		}
		limit := float64(r.run.Limit)
		c.Lines = append(c.Lines, line{Name: "container's limit", Color: jemallocC, Points: plotter.XYs{{X: 0, Y: limit}, {X: c.XMax, Y: limit}}})
		charts = append(charts, c)
	}
	return charts
}

// longestBoxRun returns the seconds of the longest first run of a limit and share.
func longestBoxRun(results []boxResult, of boxRun) (longest float64) {
	for _, r := range results {
		if r.run.Limit == of.Limit && r.run.Share == of.Share && r.run.Run == 1 {
			longest = max(longest, r.last().Seconds)
		}
	}
	return longest
}

// boxCSV is a row per run. Sizes are bytes.
func boxCSV(results []boxResult) []byte {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	_ = w.Write([]string{"limit", "share_percent", "with", "run", "result", "peak", "collections", "collector_cpu", "failed", "done", "seconds", "nodes"})
	for _, r := range results {
		last := r.last()
		_ = w.Write([]string{
			strconv.FormatInt(r.run.Limit, 10), strconv.Itoa(r.run.Share), r.run.Mode, strconv.Itoa(r.run.Run), r.Result,
			strconv.FormatInt(r.Peak, 10), strconv.FormatInt(last.Cycles, 10), strconv.FormatFloat(last.Collector, 'f', 4, 64),
			strconv.Itoa(last.Failed), strconv.FormatFloat(last.Done, 'f', 3, 64), strconv.FormatFloat(r.Seconds, 'f', 3, 64), strconv.FormatInt(last.Nodes, 10),
		})
	}
	w.Flush()
	return out.Bytes()
}
