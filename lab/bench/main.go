// Package bench runs freehold beside its peers and prints the figures.
//
//	go run ./lab bench                       all but the huge loads
//	go run ./lab bench --loads pair,mixed    some loads
//	go run ./lab bench --rows freehold,go    some peers; the first one is what ratios are to
//	go run ./lab bench --loads sort,append,buffer,lines
//	                                         records, buffers and GNU sort, about ten minutes
//	go run ./lab bench --full                with 100 million live blocks, a buffer of 8 GiB and
//	                                         5 GB of lines; takes 9 GB of memory and 16 GB of disk
//	go run ./lab bench --best                freehold beside the best peer of each load
//	go run ./lab bench --counts              instructions and cache misses, by valgrind
//	go run ./lab bench --quick               a smoke test
//
// The benchmarks are functions for package testing in alloc/, keyed/ and sorts/, which go test
// runs too, and native/native.c, which tells its figures as they do. Bench compiles the programs in
// a temporary folder, runs each for one sample at a time, in turn, and keeps watch over what else
// the machine does meanwhile. Only an idle machine gives figures worth quoting.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// Command is the command line.
type Command struct {
	Loads  []string      `help:"Only benchmarks whose names begin so, for example pair,mixed/size=16-4096." placeholder:"NAME"`
	Rows   []string      `help:"Only peers whose names begin so, for example freehold,c-." placeholder:"NAME"`
	Rounds int           `help:"Samples of each peer on each load; loads that take gigabytes have one to three." default:"5"`
	Sample time.Duration `help:"Measured time of one sample." default:"60ms"`
	Noise  float64       `help:"Percent of a processor that others may use before a sample is marked as noisy." default:"3"`
	Full   bool          `help:"All loads: with 100 million live blocks and a buffer of 8 GiB too, and 5 GB of lines instead of 1."`
	Quick  bool          `help:"A smoke test of everything in seconds. Its figures mean nothing."`
	Best   bool          `help:"Compare freehold with the best peer of each load, in one table, with simulated processors."`
	Before string        `help:"With --best or --counts: take freehold in this folder too, an old tree with the new lab/bench." type:"existingdir" placeholder:"FOLDER"`
	Counts bool          `help:"Count instructions, memory references and cache misses by valgrind, on some loads of --best."`
	List   bool          `help:"Build the programs and list all benchmarks and peers."`
	Out    string        `help:"Write every sample in Go's benchmark format: benchstat -col /peer FILE." placeholder:"FILE"`
}

// Run is the command.
func (o *Command) Run(ctx context.Context, st cli.Streams) error {
	if err := o.check(); err != nil {
		return err
	}
	wanted := selection{o.Loads, o.Rows, o.Full || o.List}
	var compared []rival
	if o.Best || o.Counts {
		if o.Counts && len(o.Loads) == 0 {
			wanted.loads = countLoads
		}
		if compared = chosen(wanted.loads); len(compared) == 0 {
			return cli.Usagef("--best and --counts have no load that begins with %s", strings.Join(o.Loads, " or "))
		}
		wanted.loads = nil
		for _, v := range compared {
			wanted.loads = append(wanted.loads, v.benchmark)
		}
	}
	if err := wanted.check(); err != nil {
		return err
	}
	plan := &run{scale: scale{"usual", o.Rounds, o.Sample}, limit: o.Noise / 100, blind: o.Quick}
	switch {
	case o.Quick:
		plan.scale = scale{"quick", 1, 4 * time.Millisecond}
	case o.Full:
		plan.scale.name = "full"
	}

	people := st.Out // read the report there
	if o.Out == stdoutPath {
		people = st.Err
	}
	var out io.WriteCloser
	if o.Out != "" {
		var err error
		if out, err = open(o.Out, st.Out); err != nil { // before the minutes of the run
			return err
		}
		defer out.Close()
	}

	dir, err := os.MkdirTemp("", "freehold-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	all := slices.DeleteFunc(programs(o.Before), func(p *program) bool { return !wanted.needs(p) || compared != nil && !p.mayRun(compared) })
	fmt.Fprintf(st.Err, "bench: building %s, a minute or two the first time\n", cli.Plural(len(all), "program"))
	bar, built := cli.NewBar(st.Err, time.Second), 0
	newBuilder(ctx, dir).buildAll(ctx, all, func(p *program) {
		built++
		bar.Show(float64(built)/float64(len(all)), "building "+p.name)
	})
	bar.Clear()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if plan.benchmarks, err = wanted.benchmarksOf(all); err != nil {
		return err
	}
	if compared != nil {
		plan.benchmarks = only(plan.benchmarks, compared)
	}
	if o.List {
		writeList(st.Out, plan.benchmarks)
		return nil
	}
	if len(plan.benchmarks) == 0 {
		writePrograms(people, all)
		return errors.New("no program could be built")
	}

	fmt.Fprintf(st.Err, "bench: taking %d samples of %s\n", plan.steps(), cli.Plural(len(plan.benchmarks), "benchmark"))
	began, done, steps := time.Now(), 0, plan.steps()
	plan.ticked = func(b *benchmark, p peer) {
		done++
		left := time.Since(began) / time.Duration(done) * time.Duration(steps-done)
		bar.Show(float64(done)/float64(steps), fmt.Sprintf("%d of %d, %v left: %s %s", done, steps, left.Round(time.Second), b.name, p.name))
	}
	if o.Counts {
		plan.writeCounts(ctx, people)
		bar.Clear()
		return ctx.Err()
	}
	stopped := plan.do(ctx)
	bar.Clear()
	if stopped != nil {
		fmt.Fprintln(st.Err, "bench: stopped; this is of the samples until then")
	}

	m := describe(context.WithoutCancel(ctx), all)
	writeReport(people, m, all, plan, o.Quick, compared)
	if o.Best && len(o.Loads) == 0 {
		writeTransfers(ctx, people, "", "")
		if o.Before != "" {
			writeTransfers(ctx, people, ", before", o.Before)
		}
	}
	if out != nil {
		if err := errors.Join(writeText(out, m, plan), out.Close()); err != nil {
			return err
		}
	}
	return stopped
}

// check returns an error for numbers that measure nothing.
func (o *Command) check() error {
	switch {
	case o.Before != "" && !o.Best && !o.Counts:
		return cli.Usagef("--before is for --best and --counts")
	case o.Quick || o.List:
		return nil
	case o.Rounds < 1:
		return cli.Usagef("--rounds %d, want 1 or more", o.Rounds)
	case o.Sample <= 0:
		return cli.Usagef("--sample %v, want more than 0", o.Sample)
	}
	return nil
}

func writeList(w io.Writer, all []*benchmark) {
	for _, b := range all {
		fmt.Fprintf(w, "%s\n   ", b.name)
		for _, p := range b.peers {
			fmt.Fprintf(w, " %s", p.name)
		}
		fmt.Fprintln(w)
	}
}
