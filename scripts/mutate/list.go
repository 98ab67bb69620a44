// Lists: mutations in a text that people write.
//
//	# A line of this kind, before the first mutation, is a comment.
//
//	== a moved block keeps its alignment
//	file: internal/heap/large.go
//	after: func (h *Heap) move(
//	test: GOMAXPROCS=1 ./internal/heap -run TestMove
//	-- old
//		to, _, err := h.newRun(n, max(1<<s.align, os))
//	-- new
//		to, _, err := h.newRun(n, os)
//
// The name says which promise breaks. The old text, which may be a part of a
// line or several lines, must be in the file once. With "after" that is counted
// from the line on that has the given text, itself once in the file, and the
// first counts. "test" is what go test is called with, environment first, and no
// quotes; without it, the tests of the file's package run, with -short.

package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed *.txt
var lists embed.FS

// mutation is one entry of a list.
type mutation struct {
	name  string // the list's file without .txt, and the entry's name
	file  string // slash-separated, from the module's root
	after string // where to begin; "" is the file's first line
	test  string
	old   string
	new   string
}

// readLists returns the mutations of all lists, in order.
func readLists(files fs.FS) ([]mutation, error) {
	names, err := fs.Glob(files, "*.txt")
	if err != nil {
		return nil, err
	}
	var all []mutation
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		_, entries, _ := strings.Cut("\n"+string(text), "\n== ")
		for entry := range strings.SplitSeq(entries, "\n== ") {
			m, err := parse(entry)
			m.name = strings.TrimSuffix(name, ".txt") + ": " + m.name
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
			all = append(all, m)
		}
	}
	return all, nil
}

// parse reads an entry from its name on.
func parse(text string) (m mutation, err error) {
	m.name, text, _ = strings.Cut(text, "\n")
	head, blocks, hasOld := strings.Cut("\n"+text+"\n", "\n-- old\n")
	old, new, hasNew := strings.Cut("\n"+blocks, "\n-- new\n")
	if !hasOld || !hasNew {
		return m, errors.New(`it needs the lines "-- old" and "-- new"`)
	}
	m.old, m.new = strings.TrimPrefix(old, "\n"), strings.TrimRight(new, "\n")
	for line := range strings.Lines(head) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), ": "); key {
		case "":
		case "file":
			m.file = value
		case "after":
			m.after = value
		case "test":
			m.test = value
		default:
			return m, fmt.Errorf("%q is no file:, after: or test:", strings.TrimSpace(line))
		}
	}
	if m.old == m.new {
		return m, errors.New("it changes nothing")
	}
	if m.test == "" {
		m.test = "-short ./" + path.Dir(m.file)
	}
	return m, nil
}

// apply returns source with the mutation in it.
func (m mutation) apply(source string) (string, error) {
	from := 0
	if m.after != "" {
		if n := strings.Count(source, m.after); n != 1 {
			return "", fmt.Errorf("%s has %q %d times, not once", m.file, m.after, n)
		}
		from = strings.Index(source, m.after)
	}
	n := strings.Count(source[from:], m.old)
	if n == 0 || n > 1 && m.after == "" {
		return "", fmt.Errorf("%s has the old text %d times, not once", m.file, n)
	}
	return source[:from] + strings.Replace(source[from:], m.old, m.new, 1), nil
}
