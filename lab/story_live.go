package main

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/lab/load"
	"github.com/freehold-go/freehold/lab/report"
	"github.com/freehold-go/freehold/lab/run"
	"github.com/freehold-go/freehold/lab/subject"
	"github.com/freehold-go/freehold/lab/wire"
)

// liveStory is a short gclab, and what gclab measures.
type liveStory struct{}

func (liveStory) name() string { return "gc" }

func (liveStory) subjects() (all, usual []string) {
	return []string{"go", "freehold"}, []string{"go", "freehold"}
}

// runs returns the measurements: with each setting of the collector the same memories, of which
// the Go heap has the data with pointers and without.
func (s liveStory) runs(set settings) []load.LiveRun {
	in := append([]string{"flat"}, set.subjectsOf(s)...)
	if in[1] != "go" {
		in = in[1:]
	}
	return load.LiveRuns([]string{"array"}, in, load.Tunings)
}

// check says what is wrong with the story's settings, before anything runs.
func (s liveStory) check(set settings) error {
	if err := set.Live.Check(); err != nil {
		return err
	}
	for _, r := range s.runs(set) {
		if err := set.Live.Refusal(r); err != nil {
			return cli.Usagef("--live %s: %w", cli.Bytes(set.Live.Live), err)
		}
	}
	return nil
}

func (s liveStory) measurements(set settings) int { return len(s.runs(set)) }

// measure has the name of a run for a subject.
func (liveStory) measure(ctx context.Context, set settings, name string, tell wire.Writer) (any, error) {
	r, err := load.LiveRunNamed(name)
	if err != nil {
		return nil, err
	}
	f, err := set.Live.Run(ctx, r, tell)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (s liveStory) tell(ctx context.Context, r *reporter) (sec report.Section, csv []byte, err error) {
	var outcomes []liveOutcome
	for _, run := range s.runs(r.set) {
		o := liveOutcome{run: run}
		if err := o.measure(ctx, r); err != nil {
			return sec, nil, err
		}
		outcomes = append(outcomes, o)
	}
	sec = liveSection(subject.Shapes[0], r.set.Live, outcomes)
	sec.Title = "A large live heap"
	sec.Why = "Each collection marks all that is live on the Go heap, takes processors from the program for it, and makes goroutines that allocate help. Data that is off-heap is never marked."
	sec.Notes = append(sec.Notes, liveNotes(r.set.Live)...)
	return sec, liveCSV(outcomes), liveFailure(outcomes)
}

// gclabCommand measures what live data costs the collector.
type gclabCommand struct {
	Live     cli.Size      `default:"3GiB" help:"What the data takes on the Go heap with pointers, such as 12GiB; every memory gets the same entries."`
	Data     nameList      `placeholder:"NAME,..." help:"Kinds of live data: ${shapes}. Default: all."`
	Backend  nameList      `placeholder:"NAME,..." help:"Where it is: go (the Go heap, with pointers), flat (the Go heap, without pointers), freehold. Default: all."`
	Tuning   nameList      `placeholder:"NAME,..." help:"Settings of the collector: default (GOGC=100), limit (GOGC=off and GOMEMLIMIT). Default: both."`
	Headroom *cli.Size     `placeholder:"SIZE" help:"With --tuning limit, GOMEMLIMIT is what is live on the Go heap and as much again, at least this. Default: a quarter of --live."`
	Time     time.Duration `default:"10s" help:"How long each run is under load; it goes on until a collection that has begun is done."`
	Workers  *int          `placeholder:"N" help:"Goroutines that allocate and compute. Default: GOMAXPROCS."`
	Array    cli.Size      `default:"8MiB" help:"What a worker allocates at a time."`
	Reserve  *cli.Size     `placeholder:"SIZE" help:"Memory that must stay available: a run that may take it is refused, one that takes it is stopped. Default: a twentieth of the memory, at least 256MiB."`
	Force    bool          `help:"Refuse no run. They are still stopped."`

	outputs
}

// plan turns the flags into runs, or says what is wrong with them.
func (g *gclabCommand) plan() ([]load.LiveRun, load.Live, error) {
	l := load.NewLive(int64(g.Live), g.Time)
	var memories []string
	for _, m := range subject.Memories {
		memories = append(memories, m.Name)
	}
	data, err1 := g.Data.of("--data", shapeNames())
	in, err2 := g.Backend.of("--backend", memories)
	tuned, err3 := g.Tuning.of("--tuning", load.Tunings)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, l, err
	}
	runs := load.LiveRuns(data, in, tuned)
	if len(runs) == 0 {
		return nil, l, cli.Usagef("--data %s: it cannot be kept in the memory %s", strings.Join(data, ","), strings.Join(in, ","))
	}
	l.Array = int64(g.Array)
	if g.Workers != nil {
		l.Workers = *g.Workers
	}
	if g.Reserve != nil {
		l.Reserve = int64(*g.Reserve)
	}
	l.Headroom = l.UsualHeadroom()
	if g.Headroom != nil {
		l.Headroom = int64(*g.Headroom)
	}
	if err := l.Check(); err != nil || g.Force {
		return runs, l, err
	}
	for _, r := range runs {
		if l.Refusal(r) == nil {
			return runs, l, nil
		}
	}
	return nil, l, cli.Usagef("%w; choose less, or add --force to try", l.Refusal(runs[0]))
}

func (g *gclabCommand) Run(ctx context.Context, st cli.Streams) error {
	runs, l, err := g.plan()
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s live; %s that allocate %s at a time for %v", cli.Bytes(l.Live), cli.Plural(l.Workers, "worker"), cli.Bytes(l.Array), l.Time)
	r, err := newReporter(st, g.outputs, "gclab", settings{Live: l}, len(runs), what)
	if err != nil {
		return err
	}
	var outcomes []liveOutcome
	var failure error
	for _, run := range runs {
		o := liveOutcome{run: run}
		if o.refused = l.Refusal(run); o.refused == nil || g.Force {
			o.refused = nil
			if failure = o.measure(ctx, r); failure != nil {
				break
			}
		}
		outcomes = append(outcomes, o)
		// So that a process that is killed leaves the runs it had finished. An error
		// shows again in the end.
		_ = r.files.WriteCSV(liveCSV(outcomes))
	}
	for _, s := range subject.Shapes {
		var own []liveOutcome
		for _, o := range outcomes {
			if o.run.Shape.Name == s.Name {
				own = append(own, o)
			}
		}
		if len(own) > 0 {
			r.add(liveSection(s, l, own))
		}
	}
	failure = errors.Join(failure, liveFailure(outcomes), r.files.WriteCSV(liveCSV(outcomes)))
	for _, n := range liveNotes(l) {
		fmt.Fprintln(r.text, report.Wrapped(r.text, "- ", n))
	}
	return r.end("What live data costs the collector", what+".", liveNotes(l), failure)
}

// A liveOutcome is a run and what came of it: figures, or why it was refused.
type liveOutcome struct {
	run     load.LiveRun
	figures load.Collection
	refused error
}

// measure runs it in a child. That memory ran out is in the figures.
func (o *liveOutcome) measure(ctx context.Context, r *reporter) error {
	err := r.measure(ctx, liveStory{}, o.run.Name(), o.run.Shape.Title+", "+o.run.Title(), nil, &o.figures)
	if run.Killed(err) {
		o.figures.Stopped = "the system killed it, most likely for lack of memory"
		return nil
	}
	return err
}

// outcome is "measured", or why there are no figures of a load.
func (o *liveOutcome) outcome() string {
	switch {
	case o.refused != nil:
		return "refused"
	case o.figures.Stopped != "":
		return "stopped"
	}
	return "measured"
}

func (o *liveOutcome) shown() any {
	if o.outcome() != "measured" {
		return report.Missing(o.outcome())
	}
	return o.figures
}

// liveFailure returns an error if a run was stopped.
func liveFailure(outcomes []liveOutcome) error {
	var all []error
	for _, o := range outcomes {
		if o.figures.Stopped != "" {
			all = append(all, fmt.Errorf("stopped, %s, %s: %s", o.run.Shape.Title, o.run.Title(), o.figures.Stopped))
		}
	}
	return errors.Join(all...)
}

func liveCSV(outcomes []liveOutcome) []byte {
	var keys [][]string
	var figures []any
	for _, o := range outcomes {
		keys = append(keys, append(strings.Split(o.run.Name(), "/"), fmt.Sprint(o.figures.Entries), o.outcome()))
		figures = append(figures, o.shown())
	}
	return report.CSV([]string{"data", "memory", "tuning", "entries", "outcome"}, keys, figures, load.Collection{})
}

// liveSection is what the outcomes of one shape show.
func liveSection(s subject.Shape, l load.Live, outcomes []liveOutcome) report.Section {
	sec := report.Section{Title: shapeTitle(s), Result: liveResult(s, l, outcomes)}
	var names []string
	var figures []any
	var series []report.Series
	told := map[string]bool{}
	for _, o := range outcomes {
		names, figures = append(names, load.MemoryTitle(o.run.Store.Memory)+" "+o.run.Tuning), append(figures, o.shown())
		if o.outcome() == "measured" {
			series = append(series, report.Series{Name: o.run.Title(), Color: liveColor(o.run), V: o.figures})
		}
		if st := o.run.Store; !told[st.Memory] {
			told[st.Memory] = true
			sec.Notes = append(sec.Notes, load.MemoryTitle(st.Memory)+": "+st.About+".")
		}
		if o.refused != nil {
			sec.Notes = append(sec.Notes, "refused: "+o.refused.Error()+".")
		}
		if o.figures.Stopped != "" {
			sec.Notes = append(sec.Notes, "stopped: "+o.run.Title()+": "+o.figures.Stopped+".")
		}
	}
	if len(series) > 0 {
		sec.Grids = []report.Grid{report.Columns(fmt.Sprintf("%s, %s entries", s.Title, humanize.Comma(int64(s.Entries(l.Live)))), names, figures)}
		sec.Charts = report.Charts(series)
	}
	return sec
}

// shapeTitle is the shape's title as a heading.
func shapeTitle(s subject.Shape) string { return strings.ToUpper(s.Title[:1]) + s.Title[1:] }

func shapeNames() (names []string) {
	for _, s := range subject.Shapes {
		names = append(names, s.Name)
	}
	return names
}

// liveResult compares the memories, each setting of the collector by itself.
func liveResult(s subject.Shape, l load.Live, outcomes []liveOutcome) string {
	where := map[string]string{"go": "on the Go heap", "flat": "there without pointers", "freehold": "on freehold"}
	var all []string
	for _, tuning := range load.Tunings {
		var parts []string
		for _, o := range outcomes {
			if o.outcome() != "measured" || o.run.Tuning != tuning {
				continue
			}
			text := "%s %s%%, %s and %s"
			if len(parts) == 0 {
				text = "%s %s%% of the processors' time go to the collector, the worst turn takes %s, and workers fill %s arrays a second"
			}
			f := o.figures
			parts = append(parts, fmt.Sprintf(text, where[o.run.Store.Memory], report.Percent(f.Collector), report.Duration(f.Worst), report.Figure(f.Arrays)))
		}
		if len(parts) > 0 {
			all = append(all, fmt.Sprintf("%s, %s live, %s: %s.", shapeTitle(s), cli.Bytes(l.Live), tuning, strings.Join(parts, "; ")))
		}
	}
	return strings.Join(all, " ")
}

// liveNotes explain the figures.
func liveNotes(l load.Live) []string {
	return []string{
		"default: GOGC=100. With the data off-heap the goal is then a few arrays, and collections are many and short.",
		fmt.Sprintf("limit: GOGC=off, and GOMEMLIMIT is what is live on the Go heap and as much again, at least %s.", cli.Bytes(l.Headroom)),
		fmt.Sprintf("A turn is due each %v and allocates %s in small objects; its time is from when it was due until it is done, and includes the wait for a processor.", load.TurnEvery, cli.Bytes(load.TurnBytes)),
		"collector: until the end of the last collection, all processors together. The load goes on until a collection that has begun is done. A pause stops all goroutines.",
		"goal: the size of the Go heap at which the collector wants to be done.",
	}
}

// liveColor is pale for the default settings of the collector.
func liveColor(r load.LiveRun) color.Color {
	colors := map[string][2]color.Color{
		"freehold": {report.Arena, report.Ours}, "flat": {report.PoolPale, report.Pool}, "go": {report.TheirsPale, report.Theirs},
	}[r.Store.Memory]
	if r.Tuning == load.TuningDefault {
		return colors[0]
	}
	return colors[1]
}
