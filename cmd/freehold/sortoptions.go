// Options of freehold sort: from flags to options of package extsort.

package main

import (
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/cmd/freehold/gnu"
	"github.com/freehold-go/freehold/extsort"
)

// options returns the flags as options of package extsort, or an error for a wrong flag.
func (c *sortCommand) options() (*extsort.Options, error) {
	o := &extsort.Options{Format: extsort.Lines(c.lineEnd()), Reverse: bool(c.Reverse), Unique: bool(c.Unique), TempDirs: c.TempDir}
	if c.Parallel != nil {
		if o.Parallel = *c.Parallel; o.Parallel < 1 {
			return nil, cli.Usagef("--parallel %d: want 1 or more", o.Parallel)
		}
	}
	if _, err := gnu.One("-o", c.Output); err != nil {
		return nil, err
	}
	memory, err := c.BufferSize.Bytes()
	if err != nil {
		return nil, err
	}
	o.MemoryBytes = memory
	for _, dir := range c.TempDir {
		if info, err := os.Stat(dir); err != nil {
			return nil, cli.Usagef("--temporary-directory: %w", err)
		} else if !info.IsDir() {
			return nil, cli.Usagef("--temporary-directory: %s is not a directory", dir)
		}
	}
	if c.checks() {
		switch {
		case c.Check == gnu.CheckFirst && bool(c.CheckQuiet):
			return nil, cli.Usagef("-c and -C exclude each other")
		case len(c.Files) > 1:
			return nil, cli.Usagef("extra operand %q: -c takes one file", c.Files[1])
		case len(c.Output) > 0:
			return nil, cli.Usagef("-c and -o exclude each other: -c writes no result")
		}
	}
	if c.Fixed != nil {
		o.Format, err = c.fixedFormat()
		return o, err
	}
	o.ThenRecord = !bool(c.Stable || c.Unique)
	o.Key, err = c.KeyFunc()
	return o, err
}

// fixedFormat returns the format for --fixed and an optional --key.
func (c *sortCommand) fixedFormat() (extsort.Format, error) {
	size := *c.Fixed
	if size < 1 {
		return extsort.Format{}, cli.Usagef("--fixed %d: a record has at least one byte", size)
	}
	if size > math.MaxInt32 {
		return extsort.Format{}, cli.Usagef("--fixed %d: a record has at most %d bytes", size, math.MaxInt32)
	}
	if c.OfText() || bool(c.ZeroTerminated) {
		return extsort.Format{}, cli.Usagef("--fixed: binary records are compared by their bytes, so of the options of order only -r, -u and --key are allowed")
	}
	if len(c.Key) == 0 {
		return extsort.Fixed(size), nil
	}
	var at, n int
	if got, err := fmt.Sscanf(c.Key[0]+" ", "%d:%d ", &at, &n); got != 2 || err != nil || len(c.Key) > 1 || strings.ContainsAny(c.Key[0], " \t\n") {
		return extsort.Format{}, cli.Usagef("--key %s: with --fixed write OFFSET:LENGTH in bytes, once", strings.Join(c.Key, " "))
	}
	if at < 0 || n < 1 || at > size || n > size-at {
		return extsort.Format{}, cli.Usagef("--key %s is not within a record of %d bytes", c.Key[0], size)
	}
	return extsort.FixedBy(size, at, n), nil
}
