// Bench runs freehold beside its peers and prints what it found.
//
//	go run ./bench                       all loads but the huge ones, about ten minutes
//	go run ./bench --loads pair,mixed    some loads
//	go run ./bench --rows freehold,go    some rows; the first one is what ratios are to
//	go run ./bench --loads sort,append,buffer,lines
//	                                     records, buffers and GNU sort, about ten minutes
//	go run ./bench --full                with 100 million live blocks, a buffer of 8 GiB and
//	                                     5 GB of lines; takes 9 GB of memory and 16 GB of disk
//	go run ./bench --quick               a smoke test
//
// A row is a program of its own: the loops in worker/, compiled against one
// allocator, or those in native/native.c, run with one preloaded. Bench builds
// them in a temporary folder, runs each for one sample at a time, in turn, and
// keeps watch over what else the machine does meanwhile. Only an idle machine
// gives figures worth quoting.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

type options struct {
	Loads     []string      `help:"Only loads whose names begin so, for example pair,mixed/16-4096." placeholder:"NAME"`
	Rows      []string      `help:"Only rows whose names begin so, for example freehold,c-." placeholder:"NAME"`
	Rounds    int           `help:"Samples of each row on each load; loads that take gigabytes have one to three." default:"5"`
	Sample    time.Duration `help:"Measured time of one sample." default:"60ms"`
	Noise     float64       `help:"Percent of a processor that others may use before a sample is taken again." default:"3"`
	Full      bool          `help:"All loads: with 100 million live blocks and a buffer of 8 GiB too, and 5 GB of lines instead of 1."`
	Quick     bool          `help:"A smoke test of everything in seconds. Its figures mean nothing."`
	List      bool          `help:"List loads and rows."`
	CSV       string        `name:"csv" help:"Write every sample as CSV; - is standard output." placeholder:"FILE"`
	JSON      string        `name:"json" help:"Write everything as JSON; - is standard output." placeholder:"FILE"`
	Benchstat string        `help:"Write every sample in Go's benchmark format: benchstat -col /row FILE." placeholder:"FILE"`
}

func main() {
	var o options
	kong.Parse(&o, kong.Name("bench"), kong.Description("freehold beside its peers"))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx, os.Stdout, os.Stderr); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (o *options) run(ctx context.Context, stdout, stderr io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	size := fullScale
	size.run = o.Sample
	if o.Full {
		size.lines, size.sortMemory = 5_000_000_000, 1<<30
	}
	if o.Quick {
		size, o.Rounds = quickScale, 1
	}
	plan := &run{rounds: o.Rounds, limit: o.Noise / 100, blind: o.Quick}
	var err error
	if plan.loads, err = selectLoads(loads(size), o.Loads, o.Full); err != nil {
		return err
	}
	all, err := selectRows(rows(), o.Rows)
	if err != nil {
		return err
	}
	if o.List {
		list(stdout, plan.loads, all)
		return nil
	}

	exports := []string{o.CSV, o.JSON, o.Benchstat}
	people := stdout // read the report there
	switch toStdout := slices.DeleteFunc(slices.Clone(exports), func(path string) bool { return path != stdoutPath }); {
	case len(toStdout) > 1:
		return errors.New("only one of --csv, --json and --benchstat can be -")
	case len(toStdout) == 1:
		people = stderr
	}

	for _, path := range exports { // before the minutes of the run
		if err := checkWritable(path); err != nil {
			return err
		}
	}

	dir, err := os.MkdirTemp("", "freehold-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintf(stderr, "bench: building %d programs, a minute or two the first time\n", len(all))
	b := newBuilder(ctx, dir)
	bar := newBar(stderr, len(all), "building")
	b.buildAll(ctx, all, func(*row) { bar.Add(1) })
	bar.Finish()
	plan.rows = slices.DeleteFunc(slices.Clone(all), func(r *row) bool { return r.skip != "" })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(plan.rows) == 0 {
		reportRows(people, all)
		return errors.New("no row could be built")
	}

	fmt.Fprintf(stderr, "bench: taking %d samples of %d rows\n", plan.steps(), len(plan.rows))
	if !plan.blind {
		awaitQuiet(plan.limit, time.Now().Add(10*time.Second))
	}
	bar = newBar(stderr, plan.steps(), "")
	plan.ticked = func(l load, r *row) {
		bar.Describe(l.key + " " + r.name)
		bar.Add(1)
	}
	stopped := plan.do(ctx)
	bar.Finish()
	if stopped != nil {
		fmt.Fprintln(stderr, "bench: stopped; this is of the samples until then")
	}

	m := describe(context.WithoutCancel(ctx))
	report(people, m, all, plan, o.Quick)
	for _, file := range []struct {
		path  string
		write func(io.Writer) error
	}{
		{o.CSV, func(w io.Writer) error { return writeCSV(w, plan) }},
		{o.JSON, func(w io.Writer) error { return writeJSON(w, m, all, plan) }},
		{o.Benchstat, func(w io.Writer) error { return writeBenchstat(w, m, plan) }},
	} {
		if file.path != "" {
			if err := exportTo(file.path, stdout, file.write); err != nil {
				return err
			}
		}
	}
	return stopped
}

// check returns an error for numbers that measure nothing.
func (o *options) check() error {
	switch {
	case o.Quick || o.List:
		return nil
	case o.Rounds < 1:
		return fmt.Errorf("--rounds %d, want 1 or more", o.Rounds)
	case o.Sample <= 0:
		return fmt.Errorf("--sample %v, want more than 0", o.Sample)
	}
	return nil
}

func list(w io.Writer, loads []load, rows []*row) {
	t := newTable(w, "Loads")
	for _, l := range loads {
		t.AppendRow([]any{l.key, l.table + ": " + l.column})
	}
	t.Render()
	t = newTable(w, "Rows")
	for _, r := range rows {
		t.AppendRow([]any{r.name, r.what})
	}
	t.Render()
}
