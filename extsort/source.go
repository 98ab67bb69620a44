// Source: the inputs, one after the other, as regions full of records.
//
// A region is filled by one worker while the others sort and write. What one
// region could not take begins the next.

package extsort

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/freehold-go/freehold/internal/keysort"
)

type source struct {
	l         *layout
	rawLayout *layout // of the inputs, if l is that of records with keys
	inputs    []io.Reader
	chunk     int // bytes to read at a time
	progress  *meter

	mu   sync.Mutex // held by the worker that fills its region
	next int        // input
	in   *input     // the one before
	last *region    // whose tail comes next
	raw  *scanner   // of the current input, if records are stored with keys
	rest []byte     // raw memory for it
	done bool       // nothing is left
	fed  int        // fills
}

// open returns the next input, and false after the last.
func (s *source) open() (input, bool) {
	if s.next == len(s.inputs) {
		s.done = true
		return input{}, false
	}
	s.next++
	return input{in: s.inputs[s.next-1], source: s.next - 1, progress: s.progress}, true
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
		if s.in == nil || s.in.over {
			in, ok := s.open()
			if !ok {
				return nil
			}
			s.in = &in
		}
		if err = s.more(ctx, r); err == errNoRoom {
			return nil
		}
		if err == nil {
			full, err = s.index(r)
		}
	}
	return err
}

// more reads more of the input to the tail of r, which begins a record, or ends the input
// after it.
func (s *source) more(ctx context.Context, r *region) error {
	rest := r.mem[r.text:][:r.tail]
	if s.in.ended {
		n, err := s.in.endRecord(s.l, rest)
		r.tail += n
		return err
	}
	// Half of what is left goes to the entries. A record that has the region for
	// itself may need it all.
	n := min(s.chunk, r.free()/2)
	if r.n == 0 && n < s.chunk {
		n = min(s.chunk, r.free()-keysort.EntryBytes-1)
	}
	if n < minRead(r) {
		if r.n == 0 {
			return s.tooLong(r.tail)
		}
		return errNoRoom
	}
	n, err := s.in.full(ctx, r.mem[r.text+r.tail:][:n])
	r.tail += n
	return err
}

// errNoRoom says that a region has no room for more of the input.
var errNoRoom = errors.New("no room in the region")

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
		case len(r.mem)-(r.n+1)*keysort.EntryBytes < end+1:
			return true, nil
		}
		r.add(r.text+at, n, size)
	}
}

func (s *source) tooLong(seen int) error {
	return &TooLongError{Source: s.in.source, Offset: s.in.read - int64(seen), Max: s.l.maxStored - s.l.frameBytes()}
}

// fillKeyed fills r with records and their keys.
func (s *source) fillKeyed(ctx context.Context, r *region) error {
	for {
		if s.raw == nil {
			in, ok := s.open()
			if !ok {
				return nil
			}
			s.raw = newScanner(s.rawLayout, in, s.rest, s.l.maxStored-keyedBytes, s.chunk)
		}
		for {
			if s.raw.pending == nil {
				if r.n&1023 == 0 && ctx.Err() != nil {
					return context.Cause(ctx)
				}
				_, raw, err := s.raw.next(ctx)
				if err == io.EOF {
					s.raw = nil
					break
				}
				if err != nil {
					return err
				}
				s.raw.pending = s.rawLayout.record(raw)
			}
			free := r.free() - keysort.EntryBytes
			if free < keyedBytes {
				return nil
			}
			size := s.l.store(r.mem[r.text:][:free], s.raw.pending)
			if size > s.l.maxStored || size == 0 && r.n == 0 {
				return s.raw.tooLong()
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
