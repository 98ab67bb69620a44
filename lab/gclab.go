package main

import (
	"context"
	"errors"
	"fmt"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"os/exec"
	"slices"
	"strings"
	"time"
)

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

	CSV  filePath `name:"csv" placeholder:"FILE" help:"Write a row per run, after each run; - is standard output."`
	PNG  filePath `name:"png" placeholder:"FILE" help:"Write the charts."`
	HTML filePath `name:"html" placeholder:"FILE" help:"Write the report as one page that needs no network."`
}

// plan turns the flags into runs, or says what is wrong with them.
func (g *gclabCommand) plan() ([]labRun, labLoad, error) {
	fail := func(format string, a ...any) ([]labRun, labLoad, error) {
		return nil, labLoad{}, cli.Usagef(format, a...)
	}
	for _, list := range []struct {
		flag  string
		given *nameList
		known []string
	}{
		{"--data", &g.Data, shapeNames()},
		{"--backend", &g.Backend, memoryNames()},
		{"--tuning", &g.Tuning, tunings},
	} {
		for _, name := range *list.given {
			if !slices.Contains(list.known, name) {
				return fail("%s: nothing is called %q; there are: %s", list.flag, name, strings.Join(list.known, ", "))
			}
		}
		if len(*list.given) == 0 {
			*list.given = list.known
		}
	}
	runs := labRuns(g.Data, g.Backend, g.Tuning)
	if len(runs) == 0 {
		return fail("--data %s: it cannot be kept in the memory %s", strings.Join(g.Data, ","), strings.Join(g.Backend, ","))
	}

	l := newLabLoad(int64(g.Live), g.Time)
	l.Array = int64(g.Array)
	if g.Workers != nil {
		l.Workers = *g.Workers
	}
	if g.Reserve != nil {
		l.Reserve = int64(*g.Reserve)
	}
	l.Headroom = l.usualHeadroom()
	if g.Headroom != nil {
		l.Headroom = int64(*g.Headroom)
	}
	if err := l.check(); err != nil {
		return nil, labLoad{}, err
	}
	if g.Force {
		return runs, l, nil
	}
	for _, r := range runs {
		if l.refusal(r) == nil {
			return runs, l, nil
		}
	}
	return fail("%w; choose less, or add --force to try", l.refusal(runs[0]))
}

func (g *gclabCommand) Run(ctx context.Context, st cli.Streams) error {
	runs, l, err := g.plan()
	if err != nil {
		return err
	}
	files, text, err := openOuts(map[string]filePath{"--csv": g.CSV, "--png": g.PNG, "--html": g.HTML}, st)
	if err != nil {
		return err
	}
	report := &gclabReport{load: l, began: time.Now()}
	bar := cli.NewBar(st.Err, 100*time.Millisecond)
	bar.Println(text, cli.Strong(text, fmt.Sprintf("lab gclab: starting %s, each in a process of its own", cli.Plural(len(runs), "measurement"))))
	bar.Println(text, wrapped(text, "", machineText()))
	bar.Println(text, wrapped(text, "", report.what()))

	var failure error
	for i, r := range runs {
		what := r.shape.title + ", " + r.title()
		show := func(done float64) { bar.Show((float64(i)+done)/float64(len(runs)), what) }
		show(0)
		out := labOutcome{run: r}
		if out.refused = l.refusal(r); out.refused == nil || g.Force {
			out.refused = nil
			if failure = out.measure(ctx, l, show); failure != nil {
				break
			}
		}
		report.outcomes = append(report.outcomes, out)
		// So that a process that is killed leaves the runs it had finished. An error
		// shows again in the end.
		_ = files["--csv"].write(report.csv())
	}
	bar.Clear()
	report.interrupted = errors.Is(failure, context.Canceled)
	report.print(text)
	return errors.Join(failure, report.failure(), report.write(files), files.close())
}

// A labOutcome is a run and what came of it: figures, or why it was refused.
type labOutcome struct {
	run     labRun
	figures labFigures
	refused error
}

// measure runs it in a child. That memory ran out is in the figures.
func (o *labOutcome) measure(ctx context.Context, l labLoad, progress func(float64)) error {
	err := runChild(ctx, gcStory{}, settings{Lab: l}, o.run.name(), progress, &o.figures)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.String() == "signal: killed" && ctx.Err() == nil {
		o.figures.Stopped = "the system killed it, most likely for lack of memory"
		return nil
	}
	return err
}
