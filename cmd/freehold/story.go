package main

import (
	"context"
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

	// steps is how many children tell starts, for the progress bar.
	steps() int
	// tell measures, in children, and says what came out.
	tell(ctx context.Context, set settings, run runner) (section, error)
	// measure is one child's work; its result travels as JSON.
	measure(ctx context.Context, set settings, backend string, report func(fraction float64)) (any, error)
}

var stories = []story{listStory{}, sawtoothStory{}}

// settings are the demo's flags that change what stories do.
type settings struct {
	Nodes  int           `json:"nodes"`
	High   int64         `json:"high"`
	Cycles int           `json:"cycles"`
	Settle time.Duration `json:"settle"`
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

// storyNamed returns the story called name.
func storyNamed(name string) (story, error) {
	for _, s := range stories {
		if s.name() == name {
			return s, nil
		}
	}
	return nil, usagef("no story is called %q; there are: %s", name, storyNames())
}
