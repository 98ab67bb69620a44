// Input: a source, read with care.
//
// The context is looked at before every Read, so at most one Read follows its end.
// A Read may return less than it was asked for, or nothing.

package extsort

import (
	"context"
	"fmt"
	"io"
)

// An input counts the bytes that it reads from source number source.
type input struct {
	in       io.Reader
	source   int
	progress *meter
	read     int64 // bytes
	ended    bool
	over     bool // endRecord has been called
}

// emptyReads is how many Reads in a row may return nothing.
const emptyReads = 100

// some reads at least one byte, or sets ended.
func (in *input) some(ctx context.Context, b []byte) (int, error) {
	for range emptyReads {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		n, err := in.in.Read(b)
		if n < 0 || n > len(b) {
			return 0, fmt.Errorf("freehold: extsort: a Read of %d bytes returned %d", len(b), n)
		}
		in.read += int64(n)
		in.progress.add(int64(n))
		if err == io.EOF {
			in.ended, err = true, nil
		}
		if n > 0 || err != nil || in.ended {
			return n, err
		}
	}
	return 0, fmt.Errorf("freehold: extsort: %d Reads of source %d returned nothing: %w", emptyReads, in.source, io.ErrNoProgress)
}

// full reads until b is full, or sets ended.
func (in *input) full(ctx context.Context, b []byte) (n int, err error) {
	for n < len(b) && err == nil && !in.ended {
		var more int
		more, err = in.some(ctx, b[n:])
		n += more
	}
	return n, err
}

// endRecord ends the input after rest, the beginning of a record. A line gets its end,
// in the byte after rest, and n is 1.
func (in *input) endRecord(l *layout, rest []byte) (n int, err error) {
	in.over = true
	if len(rest) == 0 {
		return 0, nil
	}
	if l.kind != kindLines {
		return 0, &TruncatedError{Source: in.source, Offset: in.read - int64(len(rest)), Bytes: len(rest)}
	}
	rest[:len(rest)+1][len(rest)] = l.end
	in.read++ // as if it had been there
	return 1, nil
}
