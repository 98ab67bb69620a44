// Check: whether an input is sorted.

package extsort

import (
	"bytes"
	"context"
	"io"
)

// Check returns a [*DisorderError] for the first record of src that is not in
// order: less than the record before or, with Unique, equal to it. Other errors
// are those of [Sort].
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
