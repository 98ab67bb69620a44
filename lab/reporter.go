package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/cmd/freehold/report"
	"github.com/freehold-go/freehold/lab/run"
)

// outputs are the flags for files.
type outputs struct {
	CSV  string `name:"csv" placeholder:"FILE" help:"Write a row for each measurement, as far as it has come; - is standard output."`
	HTML string `name:"html" placeholder:"FILE" help:"Write the report with charts as one page that needs no network; - is standard output."`
}

// A reporter runs trials and writes reports of them. All of them show as much as was measured.
type reporter struct {
	set         settings
	text        io.Writer // for people
	csv         *csv.Writer
	html        io.Writer
	files       []io.Closer
	bar         *cli.Bar
	steps, step int
	page        report.Page
}

// tell runs stories. page has the title and the subject.
func tell(ctx context.Context, st cli.Streams, o outputs, set settings, page report.Page, told ...*story) error {
	r := &reporter{set: set, bar: cli.NewBar(st.Err, 100*time.Millisecond), page: page}
	began := time.Now()
	var plans [][]*trial
	var refusals []error
	for _, s := range told {
		all := s.trials(set)
		for _, t := range all {
			if t.problem != nil && !set.Force {
				t.outcome, refusals = refused, append(refusals, t.problem)
			}
		}
		plans, r.steps = append(plans, all), r.steps+len(all)
	}
	switch {
	case r.steps == 0:
		return cli.Usagef("nothing is left to measure: what is chosen cannot be had with that --backend")
	case len(refusals) == r.steps:
		return cli.Usagef("%w; choose less", refusals[0])
	}
	if err := r.open(st, o); err != nil {
		return err
	}
	fmt.Fprintln(r.text, cli.Strong(r.text, fmt.Sprintf("lab: starting %s, in a process of its own each", cli.Plural(r.steps, "measurement"))))
	for _, line := range []string{run.MachineText(), page.Lead} {
		fmt.Fprintln(r.text, report.Wrapped(r.text, "", line))
	}

	var failure error
	for i, s := range told {
		if failure = errors.Join(failure, r.tell(ctx, s, plans[i])); ctx.Err() != nil {
			break
		}
	}
	r.bar.Clear()
	if len(r.page.Sections) > 0 {
		fmt.Fprintf(r.text, "\n%s (%v)\n", cli.Strong(r.text, "In short"), time.Since(began).Round(100*time.Millisecond))
		r.page.PrintResults(r.text)
		if ctx.Err() != nil {
			fmt.Fprintf(r.text, "- Interrupted after %s.\n", cli.Plural(r.step, "measurement"))
		}
		r.page.Facts = []string{run.MachineText(), version(), began.Format("2006-01-02 15:04"), "Each measurement ran in a process of its own."}
		failure = errors.Join(failure, r.page.Write(r.html))
	}
	failure = errors.Join(failure, r.csv.Error())
	for _, f := range r.files {
		failure = errors.Join(failure, f.Close())
	}
	return failure
}

// open opens the files. If one of them is standard output, the text for people is on standard
// error.
func (r *reporter) open(st cli.Streams, o outputs) error {
	if o.CSV == o.HTML && o.CSV != "" {
		return cli.Usagef("--csv and --html both write %s", o.CSV)
	}
	r.text = st.Out
	writers := map[string]io.Writer{"": io.Discard, "-": st.Out}
	for _, path := range []string{o.CSV, o.HTML} {
		if path == "-" {
			r.text = st.Err
		}
		if writers[path] == nil {
			f, err := os.Create(path)
			if err != nil {
				return cli.Usagef("cannot write %s: %w", path, err)
			}
			writers[path], r.files = f, append(r.files, f)
		}
	}
	r.csv, r.html = csv.NewWriter(writers[o.CSV]), writers[o.HTML]
	return nil
}

// tell runs a story's trials, and adds their figures. A trial that fails does not end the others.
func (r *reporter) tell(ctx context.Context, s *story, all []*trial) error {
	_ = r.csv.Write(append(slices.Clone(s.keys), report.Names(s.row)...))
	var failure error
	missing := 0
	for _, t := range all {
		if t.outcome != refused {
			t.problem = r.measure(ctx, s, t)
		}
		if ctx.Err() != nil && t.problem != nil {
			if t.told {
				t.outcome, t.problem = stopped, errors.New("interrupted")
			}
			break
		}
		r.step++
		switch {
		case t.problem == nil:
			t.outcome = measured
		case errors.As(t.problem, new(run.UnavailableError)):
			missing, t.outcome = missing+1, skipped
		case t.outcome != refused:
			t.outcome = stopped
			failure = errors.Join(failure, fmt.Errorf("stopped, %s, %s: %w", s.name, t.name, t.problem))
		}
		r.write(s, t)
	}
	if missing == len(all) {
		return all[0].problem
	}
	if sec := s.section(r.set, all); len(sec.Grids) > 0 {
		r.bar.Clear()
		sec.Print(r.text)
		r.page.Sections = append(r.page.Sections, sec)
	}
	return errors.Join(failure, ctx.Err())
}

// measure runs a trial.
func (r *reporter) measure(ctx context.Context, s *story, t *trial) error {
	show := func(m run.Message) {
		r.bar.Show((float64(r.step)+m.Progress)/float64(r.steps), fmt.Sprintf("%s (%s) %s", s.name, t.name, m.Text))
	}
	show(run.Message{})
	err := s.run(ctx, r.set, t, func(m run.Message) {
		// A part is the result so far. A process that is killed leaves the part that it had
		// written.
		if m.Part == nil {
			show(m)
		} else if json.Unmarshal(m.Part, t.result) == nil {
			t.told = true
			r.write(s, t)
		}
	})
	if run.Killed(err) {
		return errors.New("the system killed it, most likely for lack of memory")
	}
	return err
}

// write adds a trial's rows that are new.
func (r *reporter) write(s *story, t *trial) {
	rows := s.csv(r.set, t)
	for _, row := range rows[t.written:] {
		_ = r.csv.Write(row)
	}
	t.written = len(rows)
	r.csv.Flush()
}
