// Scanner: the records of one input, one at a time.
//
//	mem  | used | data: read, not used | free |

package extsort

import (
	"context"
	"io"
)

type scanner struct {
	input
	l     *layout // of raw records
	mem   []byte  // for the longest record
	max   int     // bytes of the longest record, without its frame
	chunk int     // bytes to read at a time, at most

	from, to int    // data
	begin    int64  // of the last record in the input
	pending  []byte // a record that its user has not dealt with
}

// newScanner returns a scanner of records of up to max bytes. mem has room for
// their frames too.
func newScanner(l *layout, in input, mem []byte, max, chunk int) *scanner {
	return &scanner{input: in, l: l, mem: mem[:max+l.frameBytes()], max: max, chunk: chunk}
}

// next returns the next record in raw form, and its bytes to compare, valid until
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

// tooLong is the error of the last record.
func (s *scanner) tooLong() error {
	return &TooLongError{Source: s.source, Offset: s.begin, Max: s.max}
}

// fill reads until there may be a whole record. It does not wait for more, so that
// what comes through a pipe goes on at once.
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
