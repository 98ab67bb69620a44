// A total order over files (a sample sort).
//
// Only names and samples go through the runner's shuffle. Lines go through files, in any file
// system for which Beam has a scheme:
//
//	files -> byte ranges --sample--> splitters
//	             |                      |
//	             +--> one file for each range and part --> sorted part
//
// Each attempt of a DoFn writes to files with names of its own, so a failed bundle may be
// repeated whatever it left behind. A sorted part gets its final name when it is complete.

package beamsort

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"sort"
	"sync"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	"github.com/freehold-go/freehold/extsort"
)

func init() {
	beam.RegisterType(reflect.TypeFor[byteRange]())
	beam.RegisterType(reflect.TypeFor[splitters]())
	// No generated code of package register: its generic functions take the compiler a minute
	// and 2 GB, and save time per element. These DoFns have few elements.
	for _, fn := range []any{&listFn{}, &sampleFn{}, &splitFn{}, &partsFn{}, &partitionFn{}, &sortFn{}, &cleanFn{}} {
		beam.RegisterDoFn(fn)
	}
}

// samplesPerPart keeps the sizes of parts within about a tenth, if the lengths of lines do not
// depend on their order.
const samplesPerPart = 200

// Options are the options of SortFiles. The zero value is 16 parts in 256 MiB.
type Options struct {
	// Parts is the number of output files. 0 means 16. With more parts than workers, workers
	// share the work evenly; but each range writes a temporary file for each part.
	Parts int
	//  MemoryBytes bounds the memory of a sort, as in [extsort.Options]. A worker's process sorts
	// one part at a time, on all its processors. 0 means 256 MiB.
	MemoryBytes int

	// RangeBytes is the size of the ranges of files that workers read in parallel. 0 means 64
	// MiB. If the file system cannot seek, as Beam's gs, a whole file is one range and is read
	// twice.
	RangeBytes int64

	// Temp is a directory or a prefix, such as gs://bucket/temp, that all workers can read and
	// write. "" means beside the output. The files there have the size of the input. SortFiles
	// removes its files in the end; a job that fails leaves files with "beamsort-" in their
	// names.
	Temp string

	// LocalTemp is a directory on the worker, for parts that exceed MemoryBytes. "" means
	// os.TempDir.
	LocalTemp string
}

// SortFiles sorts the lines of all files that glob matches by their bytes, and writes them to
// files named output-00000-of-00016 and so on. Each file is sorted, and no line is greater than
// a line of the next file, so the concatenated files equal the output of "freehold sort". A part
// may be empty. It returns the names, a PCollection<string>.
//
// Samples of the lines decide the bounds of the parts. Equal lines are in one part. Parts may
// differ in size: a part that exceeds memory is sorted all the same.
//
// A bundle may fail and be repeated at any point. A part gets its name when it is complete, and
// replaces an old file with that name. A line may have MemoryBytes/8 bytes, less with many
// processors: see [extsort.Options].
func SortFiles(s beam.Scope, glob, output string, o *Options) beam.PCollection {
	var options Options
	if o != nil {
		options = *o
	}
	if options.Parts == 0 {
		options.Parts = 16
	}
	if options.RangeBytes == 0 {
		options.RangeBytes = 64 << 20
	}
	if options.Parts < 0 || options.RangeBytes < 0 {
		panic(fmt.Sprintf("beamsort: SortFiles: Parts is %d and RangeBytes is %d: neither may be negative", options.Parts, options.RangeBytes))
	}
	filesystem.ValidateScheme(glob)
	filesystem.ValidateScheme(output)
	temp := output + "-beamsort-" + rand.Text()
	if options.Temp != "" {
		temp = options.Temp + "/beamsort-" + rand.Text()
	}

	s = s.Scope("beamsort.SortFiles")
	start := beam.Impulse(s)
	ranges := beam.Reshuffle(s, beam.ParDo(s, &listFn{Glob: glob, Bytes: options.RangeBytes, Parts: options.Parts}, start))
	samples := beam.ParDo(s, &sampleFn{}, ranges)
	split := beam.ParDo(s, &splitFn{Parts: options.Parts}, start, beam.SideInput{Input: samples})
	pieces := beam.ParDo(s, &partitionFn{Temp: temp}, ranges, beam.SideInput{Input: split})
	parts := beam.ParDo(s, &partsFn{Parts: options.Parts}, start) // parts without lines too
	sorted := beam.ParDo(s, &sortFn{
		Temp: temp, Output: output, Parts: options.Parts, MemoryBytes: options.MemoryBytes, LocalTemp: options.LocalTemp,
	}, beam.GroupByKey(s, beam.Flatten(s, pieces, parts)))
	beam.ParDo0(s, &cleanFn{Temp: temp}, start, beam.SideInput{Input: sorted})
	return sorted
}

// listFn lists the ranges of all files.
type listFn struct {
	Glob  string
	Bytes int64
	Parts int
}

func (f *listFn) ProcessElement(ctx context.Context, _ []byte, emit func(byteRange)) error {
	fs, err := filesystem.New(ctx, f.Glob)
	if err != nil {
		return err
	}
	defer fs.Close()
	files, err := fs.List(ctx, f.Glob)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no file matches %s", f.Glob)
	}
	var ranges []byteRange
	for _, file := range files {
		size, err := fs.Size(ctx, file)
		if err != nil {
			return err
		}
		lines, err := openLines(ctx, file, 0, size)
		if err != nil {
			return err
		}
		step := f.Bytes
		if !lines.seeks {
			step = max(size, 1)
		}
		if err := lines.close(); err != nil {
			return err
		}
		for begin := int64(0); begin < size; begin += step {
			ranges = append(ranges, byteRange{File: file, Begin: begin, End: min(begin+step, size)})
		}
	}
	for _, r := range ranges {
		r.Samples = f.Parts*samplesPerPart/len(ranges) + 1
		emit(r)
	}
	return nil
}

// sampleFn samples lines of a range at equal distances.
type sampleFn struct{}

func (f *sampleFn) ProcessElement(ctx context.Context, r byteRange, emit func([]byte)) (err error) {
	lines, err := openLines(ctx, r.File, r.Begin, r.End)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lines.close()) }()
	for i := range int64(r.Samples) {
		at := r.Begin + (r.End-r.Begin)*i/int64(r.Samples)
		if lines.seeks && i > 0 {
			next, err := openLines(ctx, r.File, at, r.End)
			if err != nil {
				return err
			}
			last := lines
			lines = next
			if err := last.close(); err != nil {
				return err
			}
		}
		line, err := lines.next()
		for err == nil && lines.at <= at {
			line, err = lines.next()
		}
		if err != nil {
			return notEOF(err)
		}
		emit(bytes.Clone(line))
	}
	return nil
}

func notEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// splitters are the first lines of all parts except part 0.
type splitters struct {
	Lines [][]byte
}

// part returns the part that a line belongs to.
func (s splitters) part(line []byte) int {
	return sort.Search(len(s.Lines), func(i int) bool { return bytes.Compare(s.Lines[i], line) > 0 })
}

// splitFn chooses splitters among the samples.
type splitFn struct {
	Parts int
}

func (f *splitFn) ProcessElement(_ []byte, samples func(*[]byte) bool) splitters {
	var lines [][]byte
	for line := []byte(nil); samples(&line); line = nil {
		lines = append(lines, line)
	}
	slices.SortFunc(lines, bytes.Compare)
	var s splitters
	for i := 1; i < f.Parts && len(lines) > 0; i++ {
		s.Lines = append(s.Lines, lines[len(lines)*i/f.Parts])
	}
	return s
}

// partsFn emits each part once, so that a part without lines is written too.
type partsFn struct {
	Parts int
}

func (f *partsFn) ProcessElement(_ []byte, emit func(int, string)) {
	for i := range f.Parts {
		emit(i, "")
	}
}

// partitionFn writes the lines of a range to one file for each part.
type partitionFn struct {
	Temp string
}

func (f *partitionFn) ProcessElement(ctx context.Context, r byteRange, split splitters, emit func(int, string)) (err error) {
	lines, err := openLines(ctx, r.File, r.Begin, r.End)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lines.close()) }()
	attempt := f.Temp + "-" + rand.Text()
	pieces := make([]*file, len(split.Lines)+1)
	defer func() {
		for _, p := range pieces {
			if p != nil {
				p.Close()
			}
		}
	}()
	for {
		line, err := lines.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		i := split.part(line)
		if pieces[i] == nil {
			if pieces[i], err = create(ctx, fmt.Sprintf("%s-%05d", attempt, i)); err != nil {
				return err
			}
		}
		if _, err := pieces[i].Write(line); err != nil {
			return err
		}
	}
	for i, p := range pieces {
		if p == nil {
			continue
		}
		if err := p.Close(); err != nil {
			return err
		}
		emit(i, p.name)
	}
	return nil
}

// A file is open for writing.
type file struct {
	*bufio.Writer
	name string
	dst  io.WriteCloser
}

func create(ctx context.Context, name string) (*file, error) {
	fs, err := filesystem.New(ctx, name)
	if err != nil {
		return nil, err
	}
	defer fs.Close()
	dst, err := fs.OpenWrite(ctx, name)
	if err != nil {
		return nil, err
	}
	return &file{Writer: bufio.NewWriterSize(dst, 64<<10), name: name, dst: dst}, nil
}

// Close flushes the buffer and closes the file. A second call does nothing.
func (f *file) Close() error {
	if f.dst == nil {
		return nil
	}
	err := errors.Join(f.Flush(), f.dst.Close())
	f.dst = nil
	return err
}

// sorting serializes sorts, so a process needs the memory of one.
var sorting sync.Mutex

// sortFn sorts the files of a part.
type sortFn struct {
	Temp, Output, LocalTemp string
	Parts, MemoryBytes      int
}

func (f *sortFn) ProcessElement(ctx context.Context, part int, names func(*string) bool, emit func(string)) (err error) {
	sorting.Lock()
	defer sorting.Unlock()
	dst, err := create(ctx, fmt.Sprintf("%s-%s-sorted", f.Temp, rand.Text()))
	if err != nil {
		return err
	}
	defer dst.Close()
	src := &pieces{ctx: ctx, next: names}
	defer src.close()
	o := &extsort.Options{MemoryBytes: f.MemoryBytes}
	if f.LocalTemp != "" {
		o.TempDirs = []string{f.LocalTemp}
	}
	if err := extsort.Sort(ctx, dst, o, src); err != nil {
		return err
	}
	if err := dst.Close(); err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%05d-of-%05d", f.Output, part, f.Parts)
	fs, err := filesystem.New(ctx, name)
	if err != nil {
		return err
	}
	defer fs.Close()
	if err := filesystem.Rename(ctx, fs, dst.name, name); err != nil {
		return err
	}
	emit(name)
	return nil
}

// pieces is a reader of the concatenated files. It skips the name "".
type pieces struct {
	ctx  context.Context
	next func(*string) bool
	open io.ReadCloser
}

func (p *pieces) Read(b []byte) (int, error) {
	for {
		if p.open != nil {
			n, err := p.open.Read(b)
			if err != io.EOF {
				return n, err
			}
			if err := p.close(); err != nil || n > 0 {
				return n, err
			}
		}
		var name string
		if !p.next(&name) {
			return 0, io.EOF
		}
		if name == "" {
			continue
		}
		f, err := open(p.ctx, name)
		if err != nil {
			return 0, err
		}
		p.open = f
	}
}

func (p *pieces) close() error {
	if p.open == nil {
		return nil
	}
	err := p.open.Close()
	p.open = nil
	return err
}

// cleanFn removes the job's files. It runs after all parts are sorted, since a part may be
// sorted again until then.
type cleanFn struct {
	Temp string
}

func (f *cleanFn) ProcessElement(ctx context.Context, _ []byte, sorted func(*string) bool) error {
	for name := ""; sorted(&name); {
	}
	fs, err := filesystem.New(ctx, f.Temp)
	if err != nil {
		return err
	}
	defer fs.Close()
	r, ok := fs.(filesystem.Remover)
	if !ok {
		return nil
	}
	left, err := fs.List(ctx, f.Temp+"-*")
	if err != nil {
		return err
	}
	for _, name := range left {
		// A repeated bundle finds files that it has removed before.
		if err := r.Remove(ctx, name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
