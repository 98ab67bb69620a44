package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/cmd/freehold/report"
	"github.com/freehold-go/freehold/lab/load"
	"github.com/freehold-go/freehold/lab/run"
	"github.com/freehold-go/freehold/lab/subject"
)

// A story is a load on several subjects, and what came out. Each has a file of its own,
// story_NAME.go, and a place in stories.
type story struct {
	name       string // what its child is called by
	title, why string
	figures    any      // what tables show: a zero value
	keys       []string // the first columns of CSV
	row        any      // what CSV shows of figures after them: a zero value

	trials   func(set settings) []*trial
	measure  func(ctx context.Context, set settings, keys []string, tell run.Writer) (any, error) // a child's work
	sentence func(set settings, group string, measured []*trial) string                           // what a table shows
	notes    func(set settings) []string

	// These may be nil. start runs a child in another way than startChild, rows has other rows of
	// CSV than one for each trial, and more adds to a section.
	start func(ctx context.Context, set settings, t *trial, args []string, on func(run.Message)) error
	rows  func(set settings, t *trial) [][]string
	more  func(set settings, all []*trial, sec *report.Section)
}

// A trial is one measurement, in a child process.
type trial struct {
	keys  []string // what is measured
	group string   // the title of the table that it is in
	name  string   // the head of its column there
	color string
	about string // a note, which trials may share

	result  any    // a pointer to what the child tells
	outcome string // "" if it was not begun
	problem error  // why it was not measured
	told    bool   // result has a part at least
	written int    // rows of CSV
}

// What becomes of a trial.
const (
	measured = "measured"
	refused  = "refused" // not begun: memory may run out
	skipped  = "skipped" // it cannot be had here
	stopped  = "stopped" // it failed, or was killed
)

// settings are the flags that change the measurement.
type settings struct {
	Sawtooth load.Sawtooth
	Live     load.Live
	Boxes    load.Boxes

	Backend  string         `json:"-"` // of the sawtooth
	LiveRuns []load.LiveRun `json:"-"`
	Force    bool           `json:"-"` // nothing is refused
}

// stories are all of them.
var stories = []*story{&liveStory, &sawtoothStory, &budgetStory}

// storyNamed returns the story called name.
func storyNamed(name string) *story {
	return stories[slices.IndexFunc(stories, func(s *story) bool { return s.name == name })]
}

func storyNames() string {
	var names []string
	for _, s := range stories {
		names = append(names, s.name)
	}
	return strings.Join(names, ",")
}

// childCommand is a child: one measurement.
type childCommand struct {
	Story    string   `arg:"" enum:"${stories}"`
	Settings string   `arg:""` // as JSON
	Keys     []string `arg:"" optional:""`
}

func (c *childCommand) Run(ctx context.Context, st cli.Streams) error {
	var set settings
	if err := json.Unmarshal([]byte(c.Settings), &set); err != nil {
		return cli.Usagef("settings: %w", err)
	}
	run.Lifeline(st.In)
	tell := run.NewWriter(st.Out)
	result, err := storyNamed(c.Story).measure(ctx, set, c.Keys, tell)
	if errors.As(err, new(run.UnavailableError)) {
		tell.Unavailable(err.Error())
	} else {
		tell.Result(result, err)
	}
	return nil
}

// run runs a trial in a child.
func (s *story) run(ctx context.Context, set settings, t *trial, on func(run.Message)) error {
	text, err := json.Marshal(set)
	if err != nil {
		return err
	}
	args := append([]string{"child", s.name, string(text)}, t.keys...)
	if s.start != nil {
		return s.start(ctx, set, t, args, on)
	}
	cmd, err := run.Self(ctx, args...)
	if err != nil {
		return err
	}
	cmd.Env = append(os.Environ(), subject.Environment(t.keys[0])...)
	return run.Child(ctx, cmd, on, t.result)
}

// csv returns the rows of a trial, as far as it has come.
func (s *story) csv(set settings, t *trial) [][]string {
	switch {
	case s.rows != nil:
		return s.rows(set, t)
	case t.outcome == "":
		return nil
	}
	return [][]string{slices.Concat(t.keys, []string{t.outcome}, report.Values(t.shown(), s.row))}
}

// shown returns what tables show of a trial: its figures, or why there are none.
func (t *trial) shown() any {
	if t.outcome != measured && !t.told {
		return t.outcome
	}
	return t.result
}

// section returns the figures of all trials that were begun.
func (s *story) section(set settings, all []*trial) report.Section {
	sec := report.Section{Title: s.title, Why: s.why}
	all = slices.DeleteFunc(slices.Clone(all), func(t *trial) bool { return t.outcome == "" })
	note := func(text string) {
		if text != "" && !slices.Contains(sec.Notes, text) {
			sec.Notes = append(sec.Notes, text)
		}
	}
	for rest := all; len(rest) > 0; {
		group := rest[0].group
		var columns []report.Column
		var good []*trial
		for ; len(rest) > 0 && rest[0].group == group; rest = rest[1:] {
			t := rest[0]
			columns = append(columns, report.Column{Name: t.name, Color: t.color, V: t.shown()})
			if t.outcome == measured {
				good = append(good, t)
			}
			note(t.about)
			if t.problem != nil {
				note(fmt.Sprintf("%s: %v.", t.outcome, t.problem))
			}
		}
		sec.Grids = append(sec.Grids, report.Columns(group, s.figures, columns))
		if len(good) > 0 {
			sec.Results = append(sec.Results, s.sentence(set, group, good))
		}
	}
	sec.Notes = append(sec.Notes, s.notes(set)...)
	if s.more != nil {
		s.more(set, all, &sec)
	}
	return sec
}
