// Sorted: sources that are sorted already. Merge writes them in order, and Check looks for the
// first record that is not in order.

package extsort

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/freehold-go/freehold/internal/arg"
)

// A stream returns the stored records of a sorted input.
type stream struct {
	*scanner
	ctx    context.Context
	keyed  *layout // of the stored records; nil if they have no keys
	stored []byte  // memory for a record with its key
}

// newStream returns a stream of the records of in. It uses mem.
func (j *job) newStream(ctx context.Context, in input, mem []byte) *stream {
	raw := j.l.ofInput()
	s := &stream{ctx: ctx}
	most := len(mem) - raw.frameBytes()
	if j.l.kind == kindKeyed {
		half := len(mem) / 2
		s.keyed, s.stored, mem = &j.l, mem[:half], mem[half:]
		most = half - keyedBytes
	}
	s.scanner = newScanner(raw, in, mem, most, max(1, min(len(mem)/4, 1<<20)))
	return s
}

// next is as sequence.next.
func (s *stream) next() (key, stored []byte, err error) {
	key, stored, err = s.scanner.next(s.ctx)
	if err != nil || s.keyed == nil {
		return key, stored, err
	}
	size := s.keyed.store(s.stored, s.l.record(stored))
	if size == 0 {
		return nil, nil, s.tooLong()
	}
	at, n, _ := s.keyed.first(s.stored[:size])
	return s.stored[at : at+n], s.stored[:size], nil
}

// A DisorderError says which record is not in order.
type DisorderError struct {
	Number int64  // of the record, counted from 1
	Record []byte // without its frame
}

func (e *DisorderError) Error() string {
	return fmt.Sprintf("freehold: extsort: record %d is not in order", e.Number)
}

// Merge writes the records of sorted sources to dst in order. Records with equal keys keep the
// order of their sources. If a source is not sorted, Merge writes all records, but not in order.
//
// Merge reads up to 255 sources at a time, or at least 15 if there is less than 64 KiB of memory
// for each. It reads fewer if the process may not open more files. If there are more sources, it
// first merges groups of them to temporary files. The longest record takes about the memory of
// its source, or half of it with Key. Errors are as for [Sort].
func Merge(ctx context.Context, dst io.Writer, o *Options, src ...io.Reader) error {
	const call = "extsort.Merge"
	arg.NotNil(call, "dst", dst)
	return withJob(ctx, call, o, src, func(j *job) error {
		return j.writeTo(dst, func(w *writer) error {
			add := w.add // one closure for all records
			f := func(c *cursor) error { return c.l.eachRaw(c.stored, add) }
			if len(src) <= j.plan.streams() {
				j.progress.begin(PhaseWriting, inputBytes(src))
				return j.mergeStreams(ctx, src, 0, f)
			}
			if err := j.mergeToRuns(ctx, src); err != nil {
				return err
			}
			return j.each(ctx, f)
		})
	})
}

// mergeStreams merges src, whose first source has the index first, and calls f for every record
// as tree.each does.
func (j *job) mergeStreams(ctx context.Context, src []io.Reader, first int, f func(c *cursor) error) error {
	each := len(j.plan.rest) / (len(src) + 1)
	cursors := make([]*cursor, len(src))
	for i, in := range src {
		mem := j.plan.rest[i*each:][:each:each]
		cursors[i] = &cursor{l: &j.l, order: i, records: j.newStream(ctx, input{in: in, source: first + i, progress: j.progress}, mem)}
	}
	t, err := startTree(&j.l, cursors)
	if err != nil {
		return err
	}
	n := 0
	return t.each(j.plan.rest[len(src)*each:][:0], func(c *cursor) error {
		if n++; n&1023 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return f(c)
	})
}

// mergeToRuns merges each group of sources to a run.
func (j *job) mergeToRuns(ctx context.Context, src []io.Reader) error {
	j.progress.begin(PhaseReading, inputBytes(src))
	file, err := j.createFile(0)
	if err != nil {
		return err
	}
	return writing(j.plan.writer(0), 0, file.WriteAt, func(out *writer) error {
		w := &runWriter{l: &j.l, file: file, w: out, x: indexes(j.plan.marks, 1)[0]}
		n := j.plan.streams()
		for first := 0; first < len(src); first += n {
			w.begin(first)
			err := j.mergeStreams(ctx, src[first:min(first+n, len(src))], first, func(c *cursor) error {
				j.longest = max(j.longest, len(c.stored))
				return w.add(c.key, c.stored)
			})
			if err != nil {
				return err
			}
			j.runs = append(j.runs, w.end())
		}
		return nil
	})
}

// Check returns a [*DisorderError] for the first record of src that is less than the record
// before it or, with Unique, equal to it. Other errors are as for [Sort].
func Check(ctx context.Context, o *Options, src io.Reader) error {
	return withJob(ctx, "extsort.Check", o, []io.Reader{src}, func(j *job) error { return j.check(ctx, src) })
}

func (j *job) check(ctx context.Context, src io.Reader) error {
	j.progress.begin(PhaseReading, inputBytes([]io.Reader{src}))
	half := len(j.plan.rest) / 2
	records := j.newStream(ctx, input{in: src, progress: j.progress}, j.plan.rest[:half])
	last := j.plan.rest[half:][:0]
	for n := int64(1); ; n++ {
		if n&1023 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		key, stored, err := records.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if n > 1 {
			if d := j.l.compare(last, key); d > 0 || d == 0 && j.l.unique {
				return &DisorderError{Number: n, Record: bytes.Clone(j.l.record(stored))}
			}
		}
		last = append(last[:0], key...)
	}
}
