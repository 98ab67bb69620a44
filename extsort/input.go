// Input: one source as bytes (input) and as raw records (scanner).
//
// An input checks the context before every Read, so at most one Read follows the context's
// end. A Read may return fewer bytes than it was asked for, or none.
//
// A scanner keeps the bytes that it has read ahead:
//
//	mem  | returned records | data | free |
//	                        from   to

package extsort

import (
	"context"
	"fmt"
	"io"

	"github.com/freehold-go/freehold/internal/arg"
)

// A TooLongError says that a record is too long for the memory of a sort.
type TooLongError struct {
	Source int   // index of the source
	Offset int64 // of the record in the source, in bytes
	Max    int   // the most bytes of a record with its key
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("freehold: extsort: the record at byte %d of source %d is longer than the %s that this much memory allows", e.Offset, e.Source, arg.Bytes(e.Max))
}

// A TruncatedError says that a source ends within a record. It matches
// [io.ErrUnexpectedEOF].
type TruncatedError struct {
	Source int   // index of the source
	Offset int64 // of the record in the source, in bytes
	Bytes  int   // of the record and its frame that the source has
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("freehold: extsort: source %d ends %s into the record at byte %d", e.Source, arg.Bytes(e.Bytes), e.Offset)
}

// Unwrap returns [io.ErrUnexpectedEOF].
func (e *TruncatedError) Unwrap() error { return io.ErrUnexpectedEOF }

// An input reads one source and counts its bytes.
type input struct {
	in       io.Reader
	source   int // its index
	progress *meter
	read     int64 // bytes
	ended    bool
	over     bool // endRecord has been called
}

// emptyReads is how many Reads in a row may return no bytes.
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

// endRecord ends the input, whose last bytes are rest. If rest begins a line, endRecord
// writes the end of the line behind rest and returns 1. Any other partial record is an error.
func (in *input) endRecord(l *layout, rest []byte) (n int, err error) {
	in.over = true
	if len(rest) == 0 {
		return 0, nil
	}
	if l.kind != kindLines {
		return 0, &TruncatedError{Source: in.source, Offset: in.read - int64(len(rest)), Bytes: len(rest)}
	}
	rest[:len(rest)+1][len(rest)] = l.end
	in.read++ // as if the input had the end of its last line
	return 1, nil
}

// A scanner returns the raw records of one input, one at a time.
type scanner struct {
	input
	l     *layout // of raw records
	mem   []byte  // has room for the longest record
	max   int     // bytes of the longest record, without its frame
	chunk int     // bytes of the largest Read

	from, to int    // mem[from:to] is the data
	begin    int64  // offset of the last record in the source
	pending  []byte // a record that the caller of next could not store yet
}

// newScanner returns a scanner of records of up to max bytes. mem has room for one and its
// frame.
func newScanner(l *layout, in input, mem []byte, max, chunk int) *scanner {
	return &scanner{input: in, l: l, mem: mem[:max+l.frameBytes()], max: max, chunk: chunk}
}

// next returns the next record in raw form, and its bytes to compare. Both are valid until
// the next call. At the end the error is io.EOF.
func (s *scanner) next(ctx context.Context) (key, raw []byte, err error) {
	for {
		data := s.mem[s.from:s.to]
		s.begin = s.read - int64(len(data))
		if at, n, size := s.l.first(data); size != 0 {
			s.from += size
			return data[at : at+n], data[:size], nil
		}
		switch {
		case len(data) == len(s.mem) || s.l.needs(data) > uint64(len(s.mem)):
			return nil, nil, s.tooLong()
		case !s.ended:
			if err := s.fill(ctx); err != nil {
				return nil, nil, err
			}
		case len(data) == 0:
			return nil, nil, io.EOF
		default:
			s.makeRoom()
			n, err := s.endRecord(s.l, s.mem[:s.to])
			if err != nil {
				return nil, nil, err
			}
			s.to += n
		}
	}
}

// tooLong returns the error for the last record.
func (s *scanner) tooLong() error {
	return &TooLongError{Source: s.source, Offset: s.begin, Max: s.max}
}

// fill reads until the data may hold a whole record. It reads no further, so a record from a
// pipe is returned without a wait for the next one.
func (s *scanner) fill(ctx context.Context) error {
	s.makeRoom()
	for s.to < len(s.mem) && !s.ended {
		n, err := s.some(ctx, s.mem[s.to:min(len(s.mem), s.to+s.chunk)])
		got := s.mem[s.to:][:n]
		s.to += n
		if err != nil || s.l.mayEnd(got) {
			return err
		}
	}
	return nil
}

// makeRoom moves the data to the beginning of mem.
func (s *scanner) makeRoom() {
	if s.from > 0 {
		s.to = copy(s.mem, s.mem[s.from:s.to])
		s.from = 0
	}
}
