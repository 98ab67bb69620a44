package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/cmd/freehold/gnu"
	"github.com/freehold-go/freehold/extsort"
	"github.com/freehold-go/freehold/internal/file/atomicfile"
	"github.com/freehold-go/freehold/internal/file/lazyfile"
)

// sortCommand is a subset of GNU sort (C locale), plus binary records.
type sortCommand struct {
	gnu.Order
	Unique gnu.Switch `short:"u" help:"Write only the first of lines with equal keys."`
	Stable gnu.Switch `short:"s" help:"Keep the order of lines with equal keys. Without -s they are ordered by the whole lines."`

	Check      gnu.Check  `short:"c" placeholder:"HOW" help:"Do not sort. If a line is not in order, show the first one and exit with status 1. =quiet is -C, =diagnose-first is -c."`
	CheckQuiet gnu.Switch `short:"C" name:"check-quiet" help:"Like -c, but show no line."`
	Merge      gnu.Switch `short:"m" help:"Merge sorted files."`

	Output         []string   `short:"o" sep:"none" placeholder:"FILE" help:"Write to FILE, which may be an input. It is replaced when the result is complete. A pipe, a device or a descriptor, such as /dev/stdout, is written in place. - is a file named -, as in GNU sort."`
	ZeroTerminated gnu.Switch `short:"z" help:"Lines end with NUL instead of newline."`
	Fixed          *int       `placeholder:"N" help:"Sort binary records of N bytes each instead of lines."`

	BufferSize gnu.Size `short:"S" placeholder:"SIZE" help:"Memory limit for data: a number of KiB, or a number with b, K, M, G, T, or % of the machine's memory. Default: a quarter of the available memory."`
	TempDir    []string `short:"T" name:"temporary-directory" sep:"none" placeholder:"DIR" help:"Directory of temporary files; may be repeated. Default: TMPDIR, or /tmp."`
	Parallel   *int     `placeholder:"N" help:"Number of processors to use. Default: all."`

	Files []string `arg:"" optional:"" name:"file" help:"Inputs; - is standard input. Without inputs, standard input is read."`
}

func (sortCommand) Help() string {
	return examples(
		"freehold sort -S 200M -o sorted.txt big.txt             # lines; -o may be the input",
		"freehold sort -t , -k 2,2n -k 1,1 -u table.csv",
		"freehold sort --fixed 24 --key 0:8 -o out.bin in.bin    # binary records by 8 of their bytes",
	)
}

// errDisorder is the error of -c after it has printed the line.
var errDisorder = &cli.Error{Code: cli.Failed}

// stdinPath is the name of standard input.
const stdinPath = "-"

func (c *sortCommand) Run(ctx context.Context, st cli.Streams) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	return c.plainly(c.run(ctx, st, o))
}

func (c *sortCommand) checks() bool { return c.Check != gnu.NoCheck || bool(c.CheckQuiet) }

// lineEnd returns the last byte of each line.
func (c *sortCommand) lineEnd() byte {
	if c.ZeroTerminated {
		return 0
	}
	return '\n'
}

// inputs returns the names of the inputs.
func (c *sortCommand) inputs() []string {
	if len(c.Files) == 0 {
		return []string{stdinPath}
	}
	return c.Files
}

func (c *sortCommand) run(ctx context.Context, st cli.Streams, o *extsort.Options) error {
	files := c.inputs()
	inputs := make([]io.Reader, len(files))
	for i, name := range files {
		if name == stdinPath {
			inputs[i] = st.In
			continue
		}
		err := mayOpen(name)
		if err == nil {
			inputs[i], err = lazyfile.Find(name)
		}
		if err != nil {
			return fmt.Errorf("cannot read: %w", err)
		}
	}
	if c.checks() {
		return c.check(ctx, st, o, files[0], inputs[0])
	}
	dst := st.Out
	var file *atomicfile.File
	if len(c.Output) > 0 {
		err := uninterrupted(ctx, func() (err error) {
			if err = mayOpen(c.Output[0]); err == nil {
				file, err = atomicfile.Create(c.Output[0])
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("-o: %w", err)
		}
		defer file.Close()
		dst = file
	}
	bar := newSortProgress(st.Err)
	o.Progress = bar.show
	work := extsort.Sort
	if bool(c.Merge) && (file == nil || !file.Overwrites()) {
		work = extsort.Merge
	}
	err := uninterrupted(ctx, func() error { return work(ctx, dst, o, inputs...) })
	bar.close()
	if err == nil && file != nil {
		err = file.Commit()
	}
	return err
}

// patience is how long an interrupted sort may take to stop. A sort that waits for the other end of
// a pipe never stops.
const patience = 2 * time.Second

// uninterrupted calls work and returns its error. If work does not return soon after ctx has ended,
// it returns the error of ctx: the process then exits, which ends work.
func uninterrupted(ctx context.Context, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		return context.Cause(ctx)
	}
}

// check is -c.
func (c *sortCommand) check(ctx context.Context, st cli.Streams, o *extsort.Options, name string, in io.Reader) error {
	err := uninterrupted(ctx, func() error { return extsort.Check(ctx, o, in) })
	var wrong *extsort.DisorderError
	if !errors.As(err, &wrong) {
		return err
	}
	if !c.CheckQuiet && c.Check != gnu.CheckQuiet {
		record := wrong.Record
		if c.Fixed != nil {
			record = fmt.Appendf(nil, "%x", record)
		}
		fmt.Fprintf(st.Err, "freehold: %s:%d: disorder: %s%c", name, wrong.Number, record, c.lineEnd())
	}
	return errDisorder
}

// plainly returns err in the command's words: with file names and flags.
func (c *sortCommand) plainly(err error) error {
	var long *extsort.TooLongError
	if errors.As(err, &long) {
		return fmt.Errorf("%s: the line or record at byte %d is longer than the %s that this -S allows", c.inputs()[long.Source], long.Offset, cli.Bytes(int64(long.Max)))
	}
	var cut *extsort.TruncatedError
	if errors.As(err, &cut) {
		return fmt.Errorf("%s: its size of %s is not a multiple of --fixed %d", c.inputs()[cut.Source], cli.Plural(cut.Offset+int64(cut.Bytes), "byte"), *c.Fixed)
	}
	return err
}
