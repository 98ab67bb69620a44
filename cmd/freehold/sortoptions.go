// Options of freehold sort: from flags to those of package extsort.

package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/freehold-go/freehold/extsort"
)

// options turns the flags into those of package extsort, or says what is wrong with
// them.
func (c *sortCommand) options() (*extsort.Options, error) {
	end := byte('\n')
	if c.ZeroTerminated {
		end = 0
	}
	o := &extsort.Options{Format: extsort.Lines(end), Reverse: c.Reverse, Unique: c.Unique, Parallel: c.Parallel, TempDirs: c.TempDir}
	if c.Parallel < 0 {
		return nil, usagef("--parallel %d: at least one is needed", c.Parallel)
	}
	memory, err := c.BufferSize.bytes()
	if err != nil {
		return nil, err
	}
	o.MemoryBytes = memory
	for _, dir := range c.TempDir {
		if info, err := os.Stat(dir); err != nil {
			return nil, usagef("--temporary-directory: %w", err)
		} else if !info.IsDir() {
			return nil, usagef("--temporary-directory: %s is no directory", dir)
		}
	}
	if c.Check || c.CheckQuiet {
		switch {
		case c.Check && c.CheckQuiet:
			return nil, usagef("-c and -C exclude each other")
		case len(c.Files) > 1:
			return nil, usagef("extra operand %q: -c takes one file", c.Files[1])
		case c.Output != "":
			return nil, usagef("-c and -o exclude each other: a check writes nothing")
		}
	}
	if c.Fixed != 0 {
		o.Format, err = c.fixedFormat()
		return o, err
	}
	keys, err := c.keys()
	if err != nil {
		return nil, err
	}
	if len(keys) > 0 {
		o.ThenRecord = !c.Stable && !c.Unique
		o.Key = keyFunc(keys, c.Reverse)
	}
	return o, nil
}

// fixedFormat is the format of --fixed with an optional --key.
func (c *sortCommand) fixedFormat() (extsort.Format, error) {
	if c.Fixed < 1 {
		return extsort.Format{}, usagef("--fixed %d: a record has at least one byte", c.Fixed)
	}
	if c.Numeric || c.IgnoreCase || c.IgnoreBlanks || c.Dictionary || c.IgnoreUnprinted || c.FieldSeparator != nil || c.ZeroTerminated {
		return extsort.Format{}, usagef("--fixed: binary records are compared by their bytes: of the options of order only -r, -u and --key go with it")
	}
	if len(c.Key) == 0 {
		return extsort.Fixed(c.Fixed), nil
	}
	var at, n int
	if got, err := fmt.Sscanf(c.Key[0]+" ", "%d:%d ", &at, &n); got != 2 || err != nil || len(c.Key) > 1 || strings.ContainsAny(c.Key[0], " \t\n") {
		return extsort.Format{}, usagef("--key %s: with --fixed it is OFFSET:LENGTH in bytes, once", strings.Join(c.Key, " "))
	}
	if at < 0 || n < 1 || at > c.Fixed || n > c.Fixed-at {
		return extsort.Format{}, usagef("--key %s is not within a record of %d bytes", c.Key[0], c.Fixed)
	}
	return extsort.FixedBy(c.Fixed, at, n), nil
}

// keys returns the sort keys, none if whole lines are compared as they are.
func (c *sortCommand) keys() ([]sortKey, error) {
	tab := -1
	if c.FieldSeparator != nil {
		switch s := *c.FieldSeparator; {
		case s == `\0`:
			tab = 0
		case len(s) == 1:
			tab = int(s[0])
		case s == "":
			return nil, usagef("-t: the separator is missing; it is one character")
		default:
			return nil, usagef("-t %s: the separator is one character", s)
		}
	}
	global := ordering{
		startBlanks: c.IgnoreBlanks, endBlanks: c.IgnoreBlanks, fold: c.IgnoreCase, dictionary: c.Dictionary,
		printable: c.IgnoreUnprinted, numeric: c.Numeric, reverse: c.Reverse,
	}
	var keys []sortKey
	for _, text := range c.Key {
		k, err := parseSortKey(text)
		if err != nil {
			return nil, err
		}
		if k.ordering == (ordering{}) {
			k.ordering = global
		}
		k.tab = tab
		keys = append(keys, k)
	}
	plain := global
	plain.reverse = false
	if len(keys) == 0 && plain != (ordering{}) {
		keys = append(keys, sortKey{ordering: global, tab: tab, toField: endOfLine})
	}
	for _, k := range keys {
		if k.numeric && (k.dictionary || k.printable) {
			return nil, usagef("options -%s are incompatible", cmp.Or(map[bool]string{true: "dn"}[k.dictionary], "in"))
		}
	}
	return keys, nil
}
