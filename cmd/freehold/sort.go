package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/freehold-go/freehold/extsort"
	"github.com/freehold-go/freehold/internal/atomicfile"
)

// sortCommand is GNU sort in the C locale, as far as it goes, and more for binary
// records.
type sortCommand struct {
	Key             []string `short:"k" sep:"none" placeholder:"POS" help:"Sort by a part of the line: F[.C][OPTS][,F[.C][OPTS]], from field F, character C, to the second place or the end of the line. OPTS are of bdfinr. May be repeated. With --fixed: OFFSET:LENGTH."`
	FieldSeparator  *string  `short:"t" placeholder:"CHAR" help:"Fields are what CHAR separates, not what begins with blanks; \\0 is NUL."`
	Numeric         bool     `short:"n" name:"numeric-sort" help:"Compare numbers: an optional minus, digits, an optional fraction."`
	Reverse         bool     `short:"r" help:"Reverse the order."`
	IgnoreCase      bool     `short:"f" help:"Compare lower case letters as upper case ones."`
	IgnoreBlanks    bool     `short:"b" name:"ignore-leading-blanks" help:"Ignore blanks at the beginning."`
	Dictionary      bool     `short:"d" name:"dictionary-order" help:"Compare blanks, letters and digits only."`
	IgnoreUnprinted bool     `short:"i" name:"ignore-nonprinting" help:"Compare printable characters only."`
	Unique          bool     `short:"u" help:"Write only the first of lines with equal keys."`
	Stable          bool     `short:"s" help:"Keep the order of lines with equal keys. Otherwise the whole lines decide."`

	Check      bool `short:"c" help:"Do not sort: exit with status 1 and name the first line that is not in order, if there is one."`
	CheckQuiet bool `short:"C" name:"check-quiet" help:"Like -c, and name no line."`
	Merge      bool `short:"m" help:"Merge files that are sorted."`

	Output         filePath `short:"o" placeholder:"FILE" help:"Write to FILE, which is replaced when the result is complete, and may be one of the inputs."`
	ZeroTerminated bool     `short:"z" help:"Lines end with NUL, not with a newline."`
	Fixed          int      `placeholder:"N" help:"Binary records of N bytes each, not lines."`

	BufferSize sortSize `short:"S" placeholder:"SIZE" help:"Use no more memory than that for data: a number of KiB, or with b, K, M, G, T or % of the machine's memory. Default: a quarter of what is available."`
	TempDir    []string `short:"T" name:"temporary-directory" sep:"none" placeholder:"DIR" help:"For temporary files; may be repeated. Default: TMPDIR, or /tmp."`
	Parallel   int      `placeholder:"N" help:"How many processors to use. Default: all."`

	Files []string `arg:"" optional:"" name:"file" help:"Inputs; - is standard input, and so is none."`
}

// A sortError has GNU sort's exit status for errors.
type sortError struct{ error }

func (e sortError) Unwrap() error { return e.error }

// errDisorder is that of a check, which has said the rest.
var errDisorder = errors.New("not in order")

func (c *sortCommand) Run(ctx context.Context, st streams) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	err = c.run(ctx, st, o)
	switch {
	case err == nil, errors.Is(err, errDisorder), ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return err
	}
	return sortError{plainSortError(err)}
}

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

func (c *sortCommand) run(ctx context.Context, st streams, o *extsort.Options) error {
	files := c.Files
	if len(files) == 0 {
		files = []string{stdoutPath}
	}
	inputs := make([]io.Reader, len(files))
	for i, name := range files {
		in, err := openSortInput(name, st)
		if err != nil {
			return err
		}
		defer in.close()
		inputs[i] = in
	}
	if c.Check || c.CheckQuiet {
		return c.check(ctx, st, o, files[0], inputs[0])
	}
	dst := st.out
	var file *atomicfile.File
	if c.Output != "" && c.Output != stdoutPath {
		var err error
		if file, err = atomicfile.Create(string(c.Output)); err != nil {
			return fmt.Errorf("-o: %w", err)
		}
		defer file.Close()
		dst = file
	}
	bar := newSortProgress(st.err)
	o.Progress = bar.show
	work := extsort.Sort
	if c.Merge {
		work = extsort.Merge
	}
	err := uninterrupted(ctx, func() error { return work(ctx, dst, o, inputs...) })
	bar.close()
	if err == nil && file != nil {
		err = file.Commit()
	}
	return err
}

// patience is how long an interrupted sort may take to stop. One that reads from a
// pipe in which nothing comes never does.
const patience = 2 * time.Second

// uninterrupted calls work and returns its error, or that of ctx if work does not
// return soon after ctx has ended. The process ends then, with all that work has.
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
func (c *sortCommand) check(ctx context.Context, st streams, o *extsort.Options, name string, in io.Reader) error {
	err := extsort.Check(ctx, o, in)
	var wrong *extsort.DisorderError
	if !errors.As(err, &wrong) {
		return err
	}
	if !c.CheckQuiet {
		record := wrong.Record
		if c.Fixed != 0 {
			record = fmt.Appendf(nil, "%x", record)
		}
		fmt.Fprintf(st.err, "freehold: %s:%d: disorder: %s\n", name, wrong.Number, record)
	}
	return errDisorder
}

// plainSortError says what is wrong in the command's words.
func plainSortError(err error) error {
	var long *extsort.TooLongError
	if errors.As(err, &long) {
		return fmt.Errorf("the line or record at byte %d of the input is longer than %s, which is what this -S allows", long.Offset, sizeText(int64(long.Max)))
	}
	return err
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

// sortProgress is a bar for long work.
type sortProgress struct {
	w       io.Writer
	bar     *progress
	began   time.Time // of the phase
	started time.Time
	phase   extsort.Phase
	shown   time.Time
}

func newSortProgress(w io.Writer) *sortProgress {
	now := time.Now()
	return &sortProgress{w: w, began: now, started: now}
}

// longWork is how long a sort takes before it shows a bar.
const longWork = time.Second

func (p *sortProgress) show(now extsort.Progress) {
	t := time.Now()
	if now.Phase != p.phase {
		p.phase, p.began = now.Phase, t
	}
	if t.Sub(p.started) < longWork || t.Sub(p.shown) < 100*time.Millisecond {
		return
	}
	p.shown = t
	if p.bar == nil {
		p.bar = newProgress(p.w)
	}
	p.bar.show(sortState(now, t.Sub(p.began)))
}

// sortState returns the fraction that is done of all work, and a text about it.
func sortState(now extsort.Progress, elapsed time.Duration) (fraction float64, text string) {
	rate := float64(now.Done) / max(elapsed.Seconds(), 1e-3)
	text = fmt.Sprintf("%s %s, %s/s", now.Phase, sizeText(now.Done), sizeText(int64(rate)))
	if now.Total == 0 {
		return 0, text
	}
	part := min(1, float64(now.Done)/float64(now.Total))
	if rate > 0 {
		left := time.Duration(float64(now.Total-min(now.Done, now.Total)) / rate * float64(time.Second))
		text = fmt.Sprintf("%s %s of %s, %s/s, %v left", now.Phase, sizeText(now.Done), sizeText(now.Total), sizeText(int64(rate)), left.Round(time.Second))
	}
	switch now.Phase {
	case extsort.PhaseReading:
		return part / 2, text
	case extsort.PhaseMerging:
		return 0.5, text
	}
	return 0.5 + part/2, text
}

func (p *sortProgress) close() {
	if p.bar != nil {
		p.bar.close()
	}
}

// A sortInput is a file that is opened when it is read, and closed at its end, so
// that any number can be named.
type sortInput struct {
	name string
	in   io.Reader
	f    *os.File
	info os.FileInfo
}

// openSortInput makes sure that the file can be read.
func openSortInput(name string, st streams) (*sortInput, error) {
	if name == stdoutPath {
		in := &sortInput{name: "standard input", in: st.in}
		if f, ok := st.in.(*os.File); ok {
			in.info, _ = f.Stat()
		}
		return in, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("read %s: is a directory", name)
	}
	in := &sortInput{name: name, info: info}
	if err == nil && !info.Mode().IsRegular() {
		in.in, in.f = f, f // a pipe may be opened once
		return in, nil
	}
	f.Close()
	return in, err
}

// Stat says how much there is to read.
func (s *sortInput) Stat() (os.FileInfo, error) {
	if s.info == nil {
		return nil, errors.ErrUnsupported
	}
	return s.info, nil
}

func (s *sortInput) Read(b []byte) (int, error) {
	if s.in == nil {
		f, err := os.Open(s.name)
		if err != nil {
			return 0, err
		}
		s.in, s.f = f, f
	}
	n, err := s.in.Read(b)
	if err == io.EOF {
		s.close()
	}
	if err != nil && err != io.EOF {
		err = fmt.Errorf("reading %s: %w", s.name, err)
	}
	return n, err
}

func (s *sortInput) close() {
	if s.f != nil {
		s.f.Close()
		s.f, s.in = nil, bytes.NewReader(nil)
	}
}
