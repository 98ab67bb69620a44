package main

import (
	"context"
	"errors"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"slices"
	"strings"
	"time"
)

// A story is one thing that the demo shows. Each has a file of its own,
// story_NAME.go, that adds it to stories.
//
// What a story measures runs in a child process per backend, so that one
// backend's heap and resident memory do not disturb the other's.
type story interface {
	name() string  // what "demo NAME" calls it
	title() string // its heading
	why() string   // why it matters, in a sentence or two

	// backends returns the names of all that the story can be told of, and those
	// of the usual ones.
	backends() (all, usual []string)
	// measurements returns how many children tell runs.
	measurements(set settings) int
	// tell measures, in children, and says what came out.
	tell(ctx context.Context, set settings, run runner) (section, error)
	// measure is one child's work; its result travels as JSON.
	measure(ctx context.Context, set settings, backend string, report func(fraction float64)) (any, error)
}

// tour is told by default. The others change the machine for a while, or need what it may not
// have.
var (
	tour    = []story{listStory{}, gcStory{}, sawtoothStory{}}
	stories = append(slices.Clone(tour), budgetStory{})
)

// settings are the demo's flags that change what stories do.
type settings struct {
	Nodes  int           `json:"nodes"`
	High   int64         `json:"high"`
	Cycles int           `json:"cycles"`
	Settle time.Duration `json:"settle"`

	Lab labLoad     `json:"lab"`
	Box boxSettings `json:"box"`

	Backends []string `json:"-"` // what --backend names; none means the usual ones
}

// backendsOf returns the backends to tell s of, in s's order.
func (set settings) backendsOf(s story) []string {
	all, usual := s.backends()
	if len(set.Backends) == 0 {
		return usual
	}
	return slices.DeleteFunc(all, func(name string) bool { return !slices.Contains(set.Backends, name) })
}

// skipped notes that a backend cannot be had here, if err says that.
func (sec *section) skipped(err error) bool {
	var unavailable unavailableError
	if !errors.As(err, &unavailable) {
		return false
	}
	sec.Notes = append(sec.Notes, "skipped: "+err.Error()+".")
	return true
}

// titleOf returns what charts and tables call the backend or contender of that
// name.
func titleOf(name string) string {
	for _, k := range backends {
		if k.name == name {
			return k.title
		}
	}
	if c, err := contenderNamed(name); err == nil {
		return c.title
	}
	return name
}

// joined lists words as a sentence does: "a, b and c".
func joined(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// A runner runs a story's measure for a backend in a child process and decodes
// its result into result.
type runner func(ctx context.Context, s story, backend string, result any) error

func storyNames() string {
	var names []string
	for _, s := range stories {
		names = append(names, s.name())
	}
	return strings.Join(names, ", ")
}

// contenderNames returns the names of all that any story can be told of.
func contenderNames() (names []string) {
	for _, s := range stories {
		all, _ := s.backends()
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
