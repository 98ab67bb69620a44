// Source: the inputs, one after the other, as regions full of records.
//
// A region is filled by one worker while the others sort and write. What one
// region could not take begins the next.

package extsort

import (
	"context"
	"fmt"
	"io"
	"sync"
)

type source struct {
	l         *layout
	rawLayout *layout // of the inputs, if l is that of records with keys
	inputs    []io.Reader
	chunk     int // bytes to read at a time
	progress  *meter

	mu   sync.Mutex // held by the worker that fills its region
	last *region    // whose tail comes next
	raw  *scanner   // of the current input, if records are stored with keys
	rest []byte     // raw memory for it
	done bool       // nothing is left
	at   int64      // bytes read
	fed  int        // fills
}

// fill fills r, which is empty or holds what has been dealt with.
func (s *source) fill(ctx context.Context, r *region) error {
	if s.last != nil {
		r.takeTail(s.last)
	} else {
		r.clear()
	}
	s.last = r
	r.seq = s.fed
	s.fed++
	if s.l.kind == kindKeyed {
		return s.fillKeyed(ctx, r)
	}
	full, err := s.index(r)
	for !full && err == nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if len(s.inputs) == 0 {
			s.done = true
			return nil
		}
		// Half of what is left goes to the entries. A record that has the region for
		// itself may need it all.
		n := min(s.chunk, r.free()/2)
		if r.n == 0 && n < s.chunk {
			n = min(s.chunk, r.free()-entryBytes-1)
		}
		if n < minRead(r) {
			if r.n == 0 {
				return s.tooLong(r.tail)
			}
			return nil
		}
		into := r.mem[r.text+r.tail:][:n]
		got, readErr := io.ReadFull(s.inputs[0], into)
		r.tail += got
		s.at += int64(got)
		s.progress.read(int64(got))
		ended := readErr == io.EOF || readErr == io.ErrUnexpectedEOF
		if readErr != nil && !ended {
			return readErr
		}
		if full, err = s.index(r); err == nil && ended {
			err = s.endInput(r, full)
			if err == nil && !full {
				full, err = s.index(r)
			}
		}
	}
	return err
}

// minRead is the least that is worth a read.
func minRead(r *region) int { return min(len(r.mem)/64, 4096) }

// index adds entries for the whole records of the tail, and reports whether the
// region is full first.
func (s *source) index(r *region) (full bool, err error) {
	end := r.text + r.tail
	for {
		data := r.mem[r.text:end]
		r.tail = len(data)
		at, n, size := s.l.first(data)
		switch {
		case size > s.l.maxStored, size == 0 && (len(data) > s.l.maxStored || s.l.needs(data) > uint64(s.l.maxStored)):
			return false, s.tooLong(len(data))
		case size == 0:
			return false, nil
		case len(r.mem)-(r.n+1)*entryBytes < end+1:
			return true, nil
		}
		r.add(r.text+at, n, size)
	}
}

// endInput ends the first input, whose last record may lack its end.
func (s *source) endInput(r *region, full bool) error {
	s.inputs = s.inputs[1:]
	tail := r.mem[r.text:][:r.tail]
	if len(tail) == 0 {
		return nil
	}
	switch s.l.kind {
	case kindLines:
		if tail[len(tail)-1] != s.l.end {
			r.mem[r.text+r.tail] = s.l.end
			r.tail++
		}
	default:
		if !full {
			return s.cutShort(len(tail))
		}
		if rest := wholeRecords(s.l, tail); rest != 0 {
			return s.cutShort(rest)
		}
	}
	return nil
}

// wholeRecords returns how many bytes after the last whole record b holds.
func wholeRecords(l *layout, b []byte) (rest int) {
	for len(b) > 0 {
		_, _, size := l.first(b)
		if size == 0 {
			break
		}
		b = b[size:]
	}
	return len(b)
}

func (s *source) cutShort(rest int) error {
	return fmt.Errorf("freehold: extsort: the input ends within a record, %d bytes after its beginning: %w", rest, io.ErrUnexpectedEOF)
}

func (s *source) tooLong(seen int) error {
	return &RecordError{Offset: s.at - int64(seen), Max: s.l.maxStored}
}

// fillKeyed fills r with records and their keys.
func (s *source) fillKeyed(ctx context.Context, r *region) error {
	for {
		if s.raw == nil {
			if len(s.inputs) == 0 {
				s.done = true
				return nil
			}
			s.raw = &scanner{l: s.rawLayout, in: s.inputs[0], mem: s.rest, offset: s.at, chunk: s.chunk, progress: s.progress}
			s.inputs = s.inputs[1:]
		}
		for {
			if s.raw.pending == nil {
				if r.n&1023 == 0 && ctx.Err() != nil {
					return context.Cause(ctx)
				}
				record, err := s.raw.next()
				if err == io.EOF {
					s.at = s.raw.offset
					s.raw = nil
					break
				}
				if err != nil {
					return err
				}
				s.raw.pending = record
			}
			free := r.free() - entryBytes
			if free < keyedBytes {
				return nil
			}
			size, err := s.l.store(r.mem[r.text:][:free], s.raw.pending)
			if err != nil {
				return err
			}
			if size > s.l.maxStored || size == 0 && r.n == 0 {
				return &RecordError{Offset: s.raw.offset - int64(s.raw.left()), Max: s.l.maxStored}
			}
			if size == 0 {
				return nil
			}
			s.raw.pending = nil
			at, n, _ := s.l.first(r.mem[r.text:][:size])
			r.add(r.text+at, n, size)
		}
	}
}
