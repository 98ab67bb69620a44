// Sort, SortFile, Sorted and SortedSeq: inputs in any order, to a writer, a file or an
// iterator. Merge and Check are in sorted.go.

package extsort

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/file/atomicfile"
	"github.com/freehold-go/freehold/internal/file/lazyfile"
)

// Sort writes the records of all sources to dst in order. It reads each source to its end, one
// after the other. When it has read all input, one goroutine writes dst, in blocks of up to
// 1 MiB.
//
// Sort returns the error of a source, of dst or of a temporary file, and context.Cause(ctx)
// once ctx is done. The error matches [freehold.ErrOutOfMemory] if Parent does not have the
// memory. It is a [*TooLongError] if a record is too long for the memory, and a
// [*TruncatedError] if a source ends within a record. After an error dst may have some of the
// records.
//
// Sort waits for a Read or Write that blocks, even if ctx ends meanwhile. It starts none after
// ctx has ended.
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

// SortFile sorts the records of files to the file dst, which may be one of them. It replaces
// dst atomically when the result is complete. Until then, and after an error, the old file is
// intact. The new file has the old one's permissions and, if the system allows it, its owner.
// Symbolic links are followed. A device, a pipe or a descriptor such as /dev/stdout is written
// in place after all input has been read.
//
// Before it reads, SortFile checks that the files of src exist, that dst may be written and
// that its directory takes a new file. It opens each file of src when it reads it; opening a
// named pipe waits for a writer. SortFile does not sync dst: after a loss of power the file may
// be incomplete.
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

// Sorted returns an iterator over the records of all sources in order, without their line ends
// or lengths. A record is valid until the next one. Errors are as for [Sort]; after an error the
// iterator yields nothing more. Each loop reads the sources, and holds memory and temporary files
// until it ends.
func Sorted(ctx context.Context, o *Options, src ...io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		err := withJob(ctx, "extsort.Sorted", o, src, func(j *job) error { return j.yieldRecords(ctx, src, yield) })
		if err != nil && err != errStopped {
			yield(nil, err)
		}
	}
}

var errStopped = errors.New("the loop has ended")

// yieldRecords sorts src and calls yield for each record.
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

// SortedSeq returns an iterator over the records of seq in order, as [Sorted] does. Records may
// have any bytes; Options.Format is ignored. seq may reuse the memory of a record for the next
// one. Several goroutines resume seq, one after the other.
func SortedSeq(ctx context.Context, o *Options, seq iter.Seq[[]byte]) iter.Seq2[[]byte, error] {
	if seq == nil {
		arg.Panicf("extsort.SortedSeq", "seq is nil")
	}
	return func(yield func([]byte, error) bool) {
		framed := Options{}
		if o != nil {
			framed = *o
		}
		framed.Format = LengthPrefixed()
		next, stop := iter.Pull(seq)
		defer stop()
		Sorted(ctx, &framed, &seqReader{ctx: ctx, next: next})(yield)
	}
}

// A seqReader reads the records of a sequence in the format LengthPrefixed.
type seqReader struct {
	ctx    context.Context
	next   func() ([]byte, bool)
	length [lengthBytes]byte
	head   []byte // unread bytes of length
	record []byte // unread bytes of the record
}

func (r *seqReader) Read(b []byte) (n int, err error) {
	for n < len(b) {
		if len(r.head)+len(r.record) == 0 {
			if r.ctx.Err() != nil {
				return n, context.Cause(r.ctx)
			}
			record, ok := r.next()
			if !ok {
				return n, io.EOF
			}
			if uint64(len(record)) > math.MaxUint32 {
				return n, fmt.Errorf("freehold: extsort: a record of %s", arg.Bytes(len(record)))
			}
			binary.LittleEndian.PutUint32(r.length[:], uint32(len(record)))
			r.head, r.record = r.length[:], record
		}
		c := copy(b[n:], r.head)
		r.head = r.head[c:]
		n += c
		c = copy(b[n:], r.record)
		r.record = r.record[c:]
		n += c
	}
	return n, nil
}
