package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/lab/load"
	"github.com/freehold-go/freehold/lab/report"
	"github.com/freehold-go/freehold/lab/run"
	"github.com/freehold-go/freehold/lab/subject"
	"github.com/freehold-go/freehold/lab/wire"
)

// A story is a load on several subjects, each in a child process, and what came out. Each has a
// file of its own, story_NAME.go, and a place in stories.
type story interface {
	name() string // what "report NAME" calls it
	// subjects returns what it can be told of, and what it is told of by default.
	subjects() (all, usual []string)
	// measurements returns how many children tell runs.
	measurements(set settings) int
	// tell measures, in children, and says what came out; csv may be nil.
	tell(ctx context.Context, r *reporter) (sec report.Section, csv []byte, err error)
	// measure is one child's work. It may have a part of its result beside an error.
	measure(ctx context.Context, set settings, subject string, tell wire.Writer) (any, error)
}

// tour is told by default. The other changes the machine for a while.
var (
	tour    = []story{listStory{}, liveStory{}, sawtoothStory{}}
	stories = append(slices.Clone(tour), budgetStory{})
)

// settings are the flags that change what children do.
type settings struct {
	Nodes    int           `json:"nodes"`
	Sawtooth load.Sawtooth `json:"sawtooth"`
	Limit    int64         `json:"limit"` // of an allocator
	Live     load.Live     `json:"live"`
	Boxes    load.Boxes    `json:"boxes"`

	Subjects []string `json:"-"` // what --backend names; none means the usual ones
}

// subjectsOf returns the subjects to tell s of, in s's order.
func (set settings) subjectsOf(s story) []string {
	all, usual := s.subjects()
	if len(set.Subjects) == 0 {
		return usual
	}
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !slices.Contains(set.Subjects, name) })
}

// subjectNames returns the names of all that any story can be told of.
func subjectNames() (names []string) {
	for _, s := range stories {
		all, _ := s.subjects()
		for _, name := range all {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// storyNamed returns the story called name.
func storyNamed(name string) (story, error) {
	for _, s := range stories {
		if s.name() == name {
			return s, nil
		}
	}
	return nil, cli.Usagef("no story is called %q; there are: %s", name, storyNames())
}

func storyNames() string {
	var names []string
	for _, s := range stories {
		names = append(names, s.name())
	}
	return strings.Join(names, ", ")
}

// A nameList is names on the command line, with commas between them.
type nameList []string

func (n *nameList) UnmarshalText(text []byte) error {
	*n = strings.Split(string(text), ",")
	return nil
}

// of returns an error for a name that is not known, and all that are known if none is given.
func (n nameList) of(flag string, known []string) ([]string, error) {
	for _, name := range n {
		if !slices.Contains(known, name) {
			return nil, cli.Usagef("%s: nothing is called %q; there are: %s", flag, name, strings.Join(known, ", "))
		}
	}
	if len(n) == 0 {
		return known, nil
	}
	return n, nil
}

// childCommand is a child: one measurement.
type childCommand struct {
	Story    string `arg:""`
	Subject  string `arg:""`
	Settings string `arg:""` // as JSON
}

func (c *childCommand) Run(ctx context.Context, st cli.Streams) error {
	s, err := storyNamed(c.Story)
	if err != nil {
		return err
	}
	var set settings
	if err := json.Unmarshal([]byte(c.Settings), &set); err != nil {
		return cli.Usagef("settings: %w", err)
	}
	tell := wire.NewWriter(st.Out)
	result, err := s.measure(run.Lifeline(ctx, st.In), set, c.Subject, tell)
	switch {
	case errors.As(err, new(run.UnavailableError)):
		tell.Unavailable(err.Error())
	case result == nil:
		return err
	default:
		tell.Result(result, err)
	}
	return nil
}

// boxLoadCommand is the load of the story budget, in its box.
type boxLoadCommand struct {
	Load string `arg:""` // as JSON
}

func (c *boxLoadCommand) Run(ctx context.Context, st cli.Streams) error {
	return load.RunInBox(run.Lifeline(ctx, st.In), c.Load, wire.NewWriter(st.Out))
}

// outputs are the flags for files.
type outputs struct {
	CSV  string `name:"csv" placeholder:"FILE" help:"Write a row for each measurement, as far as it has come; - is standard output."`
	HTML string `name:"html" placeholder:"FILE" help:"Write the report with charts as one page that needs no network; - is standard output."`
}

// A reporter runs measurements and writes reports of them. All of them show as much as was measured.
type reporter struct {
	set         settings
	files       report.Files
	text        io.Writer
	bar         *cli.Bar
	began       time.Time
	steps, step int
	sections    []report.Section
}

// newReporter begins a report of so many measurements.
func newReporter(st cli.Streams, o outputs, command string, set settings, steps int, lines ...string) (*reporter, error) {
	r := &reporter{set: set, files: report.Files{CSV: o.CSV, HTML: o.HTML}, bar: cli.NewBar(st.Err, 100*time.Millisecond), began: time.Now(), steps: steps}
	var err error
	if r.text, err = r.files.Open(st); err != nil {
		return nil, err
	}
	fmt.Fprintln(r.text, cli.Strong(r.text, fmt.Sprintf("lab %s: starting %s, in a process of its own each", command, cli.Plural(steps, "measurement"))))
	for _, line := range append([]string{run.MachineText()}, lines...) {
		fmt.Fprintln(r.text, report.Wrapped(r.text, "", line))
	}
	return r, nil
}

// measure runs one measurement in a child and decodes its result. part gets the parts of a result
// before; it may be nil.
func (r *reporter) measure(ctx context.Context, s story, name, what string, part func(json.RawMessage), result any) error {
	text, err := json.Marshal(r.set)
	if err != nil {
		return err
	}
	cmd, err := run.Self(ctx, "child", s.name(), name, string(text))
	if err != nil {
		return err
	}
	cmd.Env = append(os.Environ(), subject.Environment(name)...)
	show := func(m wire.Message) { r.bar.Show((float64(r.step)+m.Progress)/float64(r.steps), what+" "+m.Text) }
	show(wire.Message{})
	err = run.Child(ctx, cmd, func(m wire.Message) {
		if m.Part == nil {
			show(m)
		} else if part != nil {
			part(m.Part)
		}
	}, result)
	r.step++
	if err != nil && ctx.Err() == nil && !errors.As(err, new(run.UnavailableError)) {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return err
}

// measureEach measures a story's subjects, each into a result of its own, and skips those that
// cannot be had here: they become notes.
func measureEach[T any](ctx context.Context, r *reporter, s story, sec *report.Section, title func(name string) string) (names []string, results []T, err error) {
	for _, name := range r.set.subjectsOf(s) {
		var result T
		err := r.measure(ctx, s, name, s.name()+" ("+title(name)+")", nil, &result)
		if errors.As(err, new(run.UnavailableError)) {
			sec.Notes = append(sec.Notes, "skipped: "+err.Error()+".")
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		names, results = append(names, name), append(results, result)
	}
	if len(results) == 0 {
		return nil, nil, run.Unavailablef("%s", report.Joined(sec.Notes))
	}
	return names, results, nil
}

// add prints a section.
func (r *reporter) add(sec report.Section) {
	r.bar.Clear()
	sec.Print(r.text)
	r.sections = append(r.sections, sec)
}

// end prints the results of all sections, and writes the page.
func (r *reporter) end(title, lead string, facts []string, failure error) error {
	r.bar.Clear()
	if len(r.sections) == 0 {
		return failure
	}
	fmt.Fprintf(r.text, "\n%s (%v)\n", cli.Strong(r.text, "In short"), time.Since(r.began).Round(100*time.Millisecond))
	for _, sec := range r.sections {
		if sec.Result != "" {
			fmt.Fprintln(r.text, report.Wrapped(r.text, "- ", sec.Result))
		}
	}
	if errors.Is(failure, context.Canceled) {
		fmt.Fprintf(r.text, "- Interrupted after %s.\n", cli.Plural(r.step-1, "measurement"))
	}
	page := report.Page{Title: title, Lead: lead, Sections: r.sections}
	page.Facts = append([]string{run.MachineText(), version(), r.began.Format("2006-01-02 15:04"), "Each measurement ran in a process of its own."}, facts...)
	return errors.Join(failure, r.files.WriteHTML(&page))
}

// anys returns the results as figures.
func anys[T any](results []T) (all []any) {
	for _, r := range results {
		all = append(all, r)
	}
	return all
}
