package main

import (
	"fmt"
	"slices"
	"strings"
)

// A shape is one kind of data that gclab keeps live. Each has a file of its own,
// lab_NAME.go, and a place in shapes.
type shape struct {
	name   string
	title  string
	stores []store
}

// A store is one way to keep a shape's entries.
type store struct {
	memory string // a name in memories
	about  string
	entry  int64 // bytes of memory that an entry takes, about
	open   func(n int) (dataset, error)
}

// A dataset is live data of up to n entries. It is empty when it is opened.
type dataset interface {
	// add appends the entries with the numbers from from to to-1.
	add(from, to int) error
	// check verifies every stride-th entry.
	check(stride int) error
	// offHeap returns the bytes that it has off-heap.
	offHeap() int64
	// close frees what is off-heap.
	close()
}

var shapes = []shape{arrayShape, nodesShape, mapShape, stringsShape}

// memories are where entries are kept, and what reports call that.
var memories = []struct{ name, title string }{
	{"go", "Go heap"},
	{"flat", "flat"}, // on the Go heap, without pointers
	{"freehold", "freehold"},
}

// tunings are settings of the collector.
var tunings = []string{tuningDefault, tuningLimit}

const (
	tuningDefault = "default"
	tuningLimit   = "limit"
)

func memoryNames() (names []string) {
	for _, m := range memories {
		names = append(names, m.name)
	}
	return names
}

// memoryTitle returns what reports call a memory.
func memoryTitle(name string) string {
	for _, m := range memories {
		if m.name == name {
			return m.title
		}
	}
	return name
}

func shapeNames() (names []string) {
	for _, s := range shapes {
		names = append(names, s.name)
	}
	return names
}

// A labRun is one measurement of gclab.
type labRun struct {
	shape  shape
	store  store
	tuning string
}

// name is "array/go/default".
func (r labRun) name() string { return r.shape.name + "/" + r.store.memory + "/" + r.tuning }

// title is "Go heap, default".
func (r labRun) title() string { return memoryTitle(r.store.memory) + ", " + r.tuning }

// labRunNamed returns the run of that name.
func labRunNamed(name string) (labRun, error) {
	if parts := strings.Split(name, "/"); len(parts) == 3 {
		for _, r := range labRuns(parts[:1], parts[1:2], parts[2:]) {
			return r, nil
		}
	}
	return labRun{}, fmt.Errorf("gclab has no measurement called %q", name)
}

// labRuns returns the runs of all that is named, in the order of the tables above. A
// shape that cannot be kept in a memory has no run there.
func labRuns(data, in, tuned []string) (runs []labRun) {
	for _, s := range shapes {
		for _, st := range s.stores {
			for _, t := range tunings {
				if slices.Contains(data, s.name) && slices.Contains(in, st.memory) && slices.Contains(tuned, t) {
					runs = append(runs, labRun{s, st, t})
				}
			}
		}
	}
	return runs
}

// entries returns how many entries take live bytes on the Go heap with pointers: the
// same number in every memory.
func (s shape) entries(live int64) int { return int(live / s.stores[0].entry) }
