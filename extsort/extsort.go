package extsort

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"runtime"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/atomicfile"
)

// Options says what to sort by, and with what. nil means all defaults: lines, by
// their bytes.
type Options struct {
	// Format says where records begin and end. The zero Format is Lines('\n').
	Format Format

	// Key returns the sort key of a record: bytes.Compare of two keys decides
	// which record is first. It may append the key to dst, which is empty, or
	// return a part of record. Both are valid during the call only. It is called
	// once for each record and must not keep state: equal records have equal keys.
	// A key is stored in front of its record, so it needs memory and disk space.
	// nil means that a record is its own key.
	Key func(dst, record []byte) []byte

	// ThenRecord orders records with equal keys by their bytes. Otherwise they
	// keep the order of the input. No key may then be the beginning of another
	// one. It is ignored without Key.
	ThenRecord bool

	// Reverse reverses the order. Records with equal keys keep the order of the
	// input all the same.
	Reverse bool

	// Unique keeps only the first of records with equal keys.
	Unique bool

	// Memory is how many bytes a sort may take from Parent, which is all it uses
	// but for a few bytes per 32 KiB of input and the Go runtime. It takes them at
	// once; pages that it does not touch are not resident. 0 means 256 MiB; less
	// than MinMemory is a panic. The longest possible record is a quarter of
	// Memory/Parallel or an eighth of Memory, whichever is less, or little less.
	Memory int

	// Parallel is how many goroutines sort at a time. 0 means GOMAXPROCS; negative
	// is a panic. Small Memory makes it less.
	Parallel int

	// TempDirs are the directories for temporary files, which are used if the
	// input does not fit in Memory, and then need as much space as the records,
	// with their keys, have bytes. The workers take the directories in turn. None
	// means os.TempDir, which on many systems is itself in memory.
	TempDirs []string

	// Progress, if not nil, is called from time to time, by one goroutine after
	// the other. The sort waits for it.
	Progress func(Progress)

	// Parent is where the memory comes from. nil means freehold.Pages.
	Parent freehold.Allocator
}

const defaultMemory = 256 << 20

func defaultParallel() int { return runtime.GOMAXPROCS(0) }

// Sort writes the records of all sources to dst, sorted. dst is written from one
// goroutine, by and large in blocks of 1 MiB, and only once all input has been
// read. Each source is read to its end, one after the other.
//
// The error is that of a source, of dst, of a temporary file, or of ctx. It matches
// [freehold.ErrOutOfMemory] if Parent does not have the memory, is a [*RecordError]
// if a record is too long for it, and matches [io.ErrUnexpectedEOF] if a source ends
// within a record. After an error dst may have been written in part.
//
// Sort does not return before a Read of a source or a Write of dst that waits.
func Sort(ctx context.Context, dst io.Writer, o *Options, src ...io.Reader) error {
	return withJob("extsort.Sort", o, func(j *job) error {
		if err := j.makeRuns(ctx, src); err != nil {
			return err
		}
		return j.writeTo(dst, func(w *writer) error { return j.mergeTo(ctx, w) })
	})
}

// SortFile sorts the records of files to the file dst, which may be one of them. It
// replaces dst atomically when the result is complete: until then, and after an error,
// the old file is intact. The new one has its permissions and, if the system allows
// it, its owner. Symbolic links are followed; a device or a pipe is written at once.
//
// Before it reads, SortFile makes sure that dst may be written and that its directory
// takes a new file. It does not wait for the disk: after a loss of power dst may be
// incomplete.
func SortFile(ctx context.Context, dst string, o *Options, src ...string) error {
	inputs := make([]io.Reader, len(src))
	for i, name := range src {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		inputs[i] = f
	}
	f, err := atomicfile.Create(dst)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := Sort(ctx, f, o, inputs...); err != nil {
		return err
	}
	if err := f.Commit(); err != nil {
		return fmt.Errorf("freehold: extsort: replacing %s: %w", dst, err)
	}
	return nil
}

// Records reads all sources and returns an iterator over their records in order,
// without what frames them. A record is valid until the next one. The errors are
// those of [Sort]; an error is the last that the iterator yields. Memory and
// temporary files are held until the loop ends.
func Records(ctx context.Context, o *Options, src ...io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		err := withJob("extsort.Records", o, func(j *job) error { return j.yieldRecords(ctx, src, yield) })
		if err != nil && err != errStopped {
			yield(nil, err)
		}
	}
}

var errStopped = errors.New("the loop has ended")

func (j *job) yieldRecords(ctx context.Context, src []io.Reader, yield func([]byte, error) bool) error {
	if err := j.makeRuns(ctx, src); err != nil {
		return err
	}
	return j.each(ctx, func(c *cursor) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !yield(j.l.record(c.stored), nil) {
			return errStopped
		}
		return nil
	})
}
