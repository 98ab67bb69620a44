// Streams: inputs that are sorted already are merged or checked as they are read.

package extsort

import (
	"context"
	"fmt"
	"io"
)

// Merge writes the records of all sources to dst in order, if each source is
// sorted. If not, the next record is always the least of those that are next in
// their sources. It reads the sources together and uses no temporary files.
// Of records with equal keys those of an earlier source are first. The errors are
// those of [Sort].
func Merge(ctx context.Context, dst io.Writer, o *Options, src ...io.Reader) error {
	return withJob("extsort.Merge", o, func(j *job) error {
		return j.writeTo(dst, func(w *writer) error { return j.mergeStreams(ctx, w, src) })
	})
}

func (j *job) mergeStreams(ctx context.Context, w *writer, src []io.Reader) error {
	j.progress.begin(Writing, inputBytes(src))
	cursors := make([]*cursor, len(src))
	raw := j.l.ofInput()
	for i, in := range src {
		cursors[i] = &cursor{l: &j.l, order: i, in: j.newStream(ctx, raw, in, i, len(src))}
	}
	t, err := startTree(&j.l, cursors)
	if err != nil {
		return err
	}
	var last []byte
	n := 0
	return t.each(&last, func(c *cursor) error {
		if n++; n&1023 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		head, tail := j.l.frame(len(c.in.record))
		return firstError(w.add(head), w.add(c.in.record), w.add(tail))
	})
}

// A stream is a source that a cursor reads.
type stream struct {
	*scanner
	ctx    context.Context // of the merge
	record []byte          // the current one, without its frame
	key    []byte          // memory for its stored form, if it has a key
}

// newStream returns stream i of n, with its share of the memory.
func (j *job) newStream(ctx context.Context, raw *layout, in io.Reader, i, n int) *stream {
	each := len(j.plan.rest) / n
	mem := j.plan.rest[i*each:][:each]
	s := &stream{ctx: ctx}
	most := each - raw.frameBytes()
	if j.l.kind == kindKeyed {
		s.key, mem = mem[:each/2], mem[each/2:]
		most = len(s.key) - keyedBytes
	}
	s.scanner = newScanner(raw, input{in: in, source: i, progress: j.progress}, mem, most, clamp(each/4, 1, 1<<20))
	return s
}

// advanceStream moves to the next record of the stream.
func (c *cursor) advanceStream() error {
	record, err := c.in.next(c.in.ctx)
	if err == io.EOF {
		c.end()
		return nil
	}
	if err != nil {
		return err
	}
	c.in.record, c.key = record, record
	switch c.l.kind {
	case kindFixed:
		c.key = record[c.l.keyAt:][:c.l.keyN]
	case kindKeyed:
		size := c.l.store(c.in.key, record)
		if size == 0 {
			return c.in.tooLong()
		}
		at, n, _ := c.l.first(c.in.key[:size])
		c.key = c.in.key[at:][:n]
	}
	c.word = c.l.word(c.key, c.skip)
	return nil
}

// A DisorderError says which record is not in order.
type DisorderError struct {
	Number int64  // of the record, counted from 1
	Record []byte // without its frame
}

func (e *DisorderError) Error() string {
	return fmt.Sprintf("freehold: extsort: record %d is not in order", e.Number)
}

// Check returns a [*DisorderError] for the first record of src that is not in
// order: less than the record before or, with Unique, equal to it. Other errors
// are those of [Sort].
func Check(ctx context.Context, o *Options, src io.Reader) error {
	return withJob("extsort.Check", o, func(j *job) error { return j.check(ctx, src) })
}

func (j *job) check(ctx context.Context, src io.Reader) error {
	j.progress.begin(Reading, inputBytes([]io.Reader{src}))
	c := &cursor{l: &j.l, in: j.newStream(ctx, j.l.ofInput(), src, 0, 2)}
	last := j.plan.rest[len(j.plan.rest)/2:][:0]
	for n := int64(1); ; n++ {
		if n&1023 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := c.advance(); err != nil || c.ended {
			return err
		}
		if n > 1 {
			if d := j.l.compare(last, c.key); d > 0 || d == 0 && j.l.unique {
				return &DisorderError{Number: n, Record: append([]byte(nil), c.in.record...)}
			}
		}
		last = append(last[:0], c.key...)
	}
}
