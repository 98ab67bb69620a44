// Streams: inputs that are sorted already, as they are read.

package extsort

import (
	"context"
	"io"

	"github.com/freehold-go/freehold/internal/arg"
)

// A stream is an input that a cursor reads.
type stream struct {
	*scanner
	ctx    context.Context // of the merge
	keyed  *layout         // nil if records are stored as they are
	stored []byte          // memory for a record with its key
}

// newStream returns a stream of records of an input. It uses mem.
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

// Merge writes the records of all sources to dst in order, if each source is
// sorted; if not, in another order. Of records with equal keys those of an earlier
// source are first.
//
// It reads up to 255 sources together, fewer if there is less than 64 KiB of memory
// for each, but at least 15. It reads fewer than that too if the process may not open
// so many files more. More are merged in groups first, through temporary files. A record may have about as many bytes as there is memory for its source, or
// half of that with Key. The errors are those of [Sort].
func Merge(ctx context.Context, dst io.Writer, o *Options, src ...io.Reader) error {
	const call = "extsort.Merge"
	arg.NotNil(call, "dst", dst)
	return withJob(ctx, call, o, src, func(j *job) error {
		return j.writeTo(dst, func(w *writer) error {
			add := w.add // not one for each record
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

// mergeStreams calls f for every record of the sources from number first on.
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

// mergeToRuns merges groups of sources, each to a run.
func (j *job) mergeToRuns(ctx context.Context, src []io.Reader) error {
	j.progress.begin(PhaseReading, inputBytes(src))
	file, err := j.createFile(0)
	if err != nil {
		return err
	}
	return writing(j.plan.writer(0), 0, file.writeAt, func(out *writer) error {
		w := &runWriter{l: &j.l, file: file, w: out, x: j.plan.indexes(1)[0]}
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
