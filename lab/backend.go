package main

import (
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"strings"
	"time"
)

// A backend is an allocator under test. Each has a file of its own,
// backend_NAME.go, that adds it to backends.
type backend interface {
	// alloc returns size bytes, whose contents are undefined.
	alloc(size int) ([]byte, error)
	// free takes back what alloc returned; the caller keeps no reference.
	free(b []byte)
	// trim gives all memory that it can to the operating system, now.
	trim()
	// stats returns the allocator's own figures.
	stats() backendStats
	// close ends the backend; nothing it handed out is used after.
	close()
}

// backendStats are an allocator's own figures, in bytes; -1 where it has none.
type backendStats struct {
	allocated int64 // in live blocks, rounded up as the allocator does
}

// A backendKind says how to make a backend.
type backendKind struct {
	name  string
	title string        // in charts and tables
	about string        // what free and trim mean there
	decay time.Duration // how long free memory stays before it goes back, 0 if nobody knows
	// preload returns what LD_PRELOAD must be in a process that is to have the
	// backend, "" if this process will do. It is nil where any process will.
	preload func() (string, error)
	// open returns a backend. limit is a hard limit in bytes, 0 for none; a
	// backend that has no such thing refuses it.
	open func(limit int64) (backend, error)
}

var backends = []backendKind{freeholdBackend, goBackend, libcBackend, jemallocBackend}

func backendNames() []string {
	var names []string
	for _, k := range backends {
		names = append(names, k.name)
	}
	return names
}

// backendNamed returns the backend called name.
func backendNamed(name string) (backendKind, error) {
	for _, k := range backends {
		if k.name == name {
			return k, nil
		}
	}
	return backendKind{}, cli.Usagef("no backend is called %q; there are: %s", name, strings.Join(backendNames(), ", "))
}

// noLimit is the answer of a backend without hard limits.
func noLimit(name string) error {
	return cli.Usagef("--limit: the %s backend has no hard limit", name)
}
