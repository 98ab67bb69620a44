// A sort, from its inputs to its output:
//
//	read    inputs --> regions, one for each worker       source.go, worker.go
//	sort    each region                                   region.go, internal/keysort
//	write   regions --> runs in temporary files,          run.go
//	        unless the input fits into the regions
//	merge   runs --> output, in parts, or one by one      merge.go, reduce.go

package extsort

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/file/atomicfile"
	"github.com/freehold-go/freehold/internal/file/lazyfile"
)

// Options says what to sort by, and with what. nil means all defaults: lines, by
// their bytes.
type Options struct {
	// Format says where records begin and end. The zero Format is Lines('\n').
	Format Format

	// Key returns the sort key of a record: bytes.Compare of two keys decides
	// which record is first. It may append the key to dst, which is empty, or
	// return a part of record. Both are valid during the call only. It must not keep
	// state: equal records have equal keys. Its calls never overlap, whatever
	// Parallel is; there may be two for a record. A key is stored in front of its
	// record, so it needs memory and disk space. nil means that a record is its own
	// key.
	Key func(dst, record []byte) []byte

	// ThenRecord orders records with equal keys by their bytes. Otherwise they
	// keep the order of the input. It takes two bytes for each record, and one for
	// each zero byte in its key. It is ignored without Key.
	ThenRecord bool

	// Reverse reverses the order. Records with equal keys keep the order of the
	// input all the same.
	Reverse bool

	// Unique keeps only the first of records with equal keys; with ThenRecord, of those
	// whose bytes are equal too.
	Unique bool

	// MemoryBytes is how many bytes a sort may take from Parent, which is all it
	// uses but for the Go runtime and a few hundred bytes for each run or source. It
	// takes them at once; pages that it does not touch are not resident. 0 means
	// 256 MiB; less than MinMemoryBytes is a panic. A record with its key may have
	// about min(MemoryBytes/8, MemoryBytes/(4*Parallel)) bytes; a longer one is a
	// TooLongError.
	MemoryBytes int

	// Parallel is how many goroutines sort at a time. 0 means GOMAXPROCS; negative
	// is a panic. With less than MinMemoryBytes for each it is less, and so it is if
	// the process may not open two files more for each. Each sorts up to
	// 4 GiB at a time, so more memory than that helps merging alone. Other
	// goroutines write; one more merges, to overlap the disk.
	Parallel int

	// TempDirs are the directories for temporary files, which are used if the
	// input does not fit in MemoryBytes, and then need about as much space as the records,
	// with their keys, have bytes. With more than one pass over them that is so on
	// Linux, where they shrink as they are merged; elsewhere it may be up to twice as
	// much. The workers take the directories in turn. None
	// means os.TempDir, which on many systems is itself in memory.
	TempDirs []string

	// Progress, if not nil, is called from time to time, by one goroutine after
	// the other. The sort waits for it. Its panic passes to the caller of the sort,
	// and so do those of Key, of sources and of the destination.
	Progress func(Progress)

	// Parent is where the memory comes from. nil means freehold.Pages.
	Parent freehold.Allocator
}

const defaultMemory = 256 << 20

func defaultParallel() int { return runtime.GOMAXPROCS(0) }

// Sort writes the records of all sources to dst, sorted. Each source is read to its
// end, one after the other. One goroutine writes dst, in blocks of up to 1 MiB, after
// all input was read.
//
// The error is that of a source, of dst or of a temporary file, or context.Cause(ctx)
// if ctx is done. It matches [freehold.ErrOutOfMemory] if Parent does not have the
// memory, is a [*TooLongError] if a record is too long for it, and a [*TruncatedError]
// if a source ends within a record. After an error dst may have been written in part.
//
// Sort waits for a Read or Write that blocks, even after ctx is done. It calls none
// after that.
func Sort(ctx context.Context, dst io.Writer, o *Options, src ...io.Reader) error {
	const call = "extsort.Sort"
	arg.NotNil(call, "dst", dst)
	return withJob(ctx, call, o, src, func(j *job) error {
		if err := j.makeRuns(ctx, src); err != nil {
			return err
		}
		return j.writeTo(dst, func(w *writer) error { return j.mergeTo(ctx, w) })
	})
}

// SortFile sorts the records of files to the file dst, which may be one of them. It
// replaces dst atomically when the result is complete: until then, and after an error,
// the old file is intact. The new one has its permissions and, if the system allows
// it, its owner. Symbolic links are followed. A device, a pipe or a descriptor, such as
// /dev/stdout, is written in place, once all input was read.
//
// Before it reads, SortFile makes sure that the files of src are there, that dst may be
// written and that its directory takes a new file. It opens each file of src when it
// reads it; to open a named pipe waits for a writer. It does not wait for the disk:
// after a loss of power dst may be incomplete.
func SortFile(ctx context.Context, dst string, o *Options, src ...string) error {
	inputs := make([]io.Reader, len(src))
	for i, name := range src {
		f, err := lazyfile.Find(name)
		if err != nil {
			return fmt.Errorf("freehold: extsort: %w", err)
		}
		defer f.Close()
		inputs[i] = f
	}
	f, err := atomicfile.Create(dst)
	if err != nil {
		return fmt.Errorf("freehold: extsort: %w", err)
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

// Sorted returns an iterator over the records of all sources in order, without what
// frames them. A record is valid until the next one. The errors are those of [Sort];
// the iterator yields one at most, and nothing after it. Each loop reads the sources;
// memory and temporary files are held until it ends.
func Sorted(ctx context.Context, o *Options, src ...io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		err := withJob(ctx, "extsort.Sorted", o, src, func(j *job) error { return j.yieldRecords(ctx, src, yield) })
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
