// Package bench runs freehold beside its peers and prints what it found.
//
//	go run ./lab bench                       all loads but the huge ones, about ten minutes
//	go run ./lab bench --loads pair,mixed    some loads
//	go run ./lab bench --rows freehold,go    some rows; the first one is what ratios are to
//	go run ./lab bench --loads sort,append,buffer,lines
//	                                         records, buffers and GNU sort, about ten minutes
//	go run ./lab bench --full                with 100 million live blocks, a buffer of 8 GiB and
//	                                         5 GB of lines; takes 9 GB of memory and 16 GB of disk
//	go run ./lab bench --quick               a smoke test
//
// A row is a program of its own: the loops in worker/, compiled against one
// allocator, or those in native/native.c, run with one preloaded. Bench builds
// them in a temporary folder, runs each for one sample at a time, in turn, and
// keeps watch over what else the machine does meanwhile. Only an idle machine
// gives figures worth quoting.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// Command is the command line.
type Command struct {
	Loads     []string      `help:"Only loads whose names begin so, for example pair,mixed/16-4096." placeholder:"NAME"`
	Rows      []string      `help:"Only rows whose names begin so, for example freehold,c-." placeholder:"NAME"`
	Rounds    int           `help:"Samples of each row on each load; loads that take gigabytes have one to three." default:"5"`
	Sample    time.Duration `help:"Measured time of one sample." default:"60ms"`
	Noise     float64       `help:"Percent of a processor that others may use before a sample is taken again." default:"3"`
	Full      bool          `help:"All loads: with 100 million live blocks and a buffer of 8 GiB too, and 5 GB of lines instead of 1."`
	Quick     bool          `help:"A smoke test of everything in seconds. Its figures mean nothing."`
	List      bool          `help:"List loads and rows."`
	CSV       string        `name:"csv" help:"Write every sample as CSV; - is standard output." placeholder:"FILE"`
	Benchstat string        `help:"Write every sample in Go's benchmark format: benchstat -col /row FILE." placeholder:"FILE"`
}

// Run is the command.
func (o *Command) Run(ctx context.Context, st cli.Streams) error {
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
		list(st.Out, plan.loads, all)
		return nil
	}

	exports := []string{o.CSV, o.Benchstat}
	people := st.Out // read the report there
	switch toStdout := slices.DeleteFunc(slices.Clone(exports), func(path string) bool { return path != stdoutPath }); {
	case len(toStdout) > 1:
		return cli.Usagef("only one of --csv and --benchstat can be -")
	case len(toStdout) == 1:
		people = st.Err
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
	fmt.Fprintf(st.Err, "bench: building %d programs, a minute or two the first time\n", len(all))
	b := newBuilder(ctx, dir)
	bar, built := cli.NewBar(st.Err, time.Second), 0
	b.buildAll(ctx, all, func(r *row) {
		built++
		bar.Show(float64(built)/float64(len(all)), "building "+r.name)
	})
	bar.Clear()
	plan.rows = slices.DeleteFunc(slices.Clone(all), func(r *row) bool { return r.skip != "" })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(plan.rows) == 0 {
		reportRows(people, all)
		return errors.New("no row could be built")
	}

	fmt.Fprintf(st.Err, "bench: taking %d samples of %d rows\n", plan.steps(), len(plan.rows))
	if !plan.blind {
		awaitQuiet(plan.limit, time.Now().Add(10*time.Second))
	}
	began, done, steps := time.Now(), 0, plan.steps()
	plan.ticked = func(l load, r *row) {
		done++
		left := time.Since(began) / time.Duration(done) * time.Duration(steps-done)
		bar.Show(float64(done)/float64(steps), fmt.Sprintf("%d of %d, %v left: %s %s", done, steps, left.Round(time.Second), l.key, r.name))
	}
	stopped := plan.do(ctx)
	bar.Clear()
	if stopped != nil {
		fmt.Fprintln(st.Err, "bench: stopped; this is of the samples until then")
	}

	m := describe(context.WithoutCancel(ctx))
	report(people, m, all, plan, o.Quick)
	for _, file := range []struct {
		path  string
		write func(io.Writer) error
	}{
		{o.CSV, func(w io.Writer) error { return writeCSV(w, plan) }},
		{o.Benchstat, func(w io.Writer) error { return writeBenchstat(w, m, plan) }},
	} {
		if file.path != "" {
			if err := exportTo(file.path, st.Out, file.write); err != nil {
				return err
			}
		}
	}
	return stopped
}

// check returns an error for numbers that measure nothing.
func (o *Command) check() error {
	switch {
	case o.Quick || o.List:
		return nil
	case o.Rounds < 1:
		return cli.Usagef("--rounds %d, want 1 or more", o.Rounds)
	case o.Sample <= 0:
		return cli.Usagef("--sample %v, want more than 0", o.Sample)
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
