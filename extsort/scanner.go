// Scanner: the records of one input, one at a time.
//
//	mem  | used | data: read, not used | free |

package extsort

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

type scanner struct {
	l        *layout // of raw records
	in       io.Reader
	mem      []byte
	chunk    int
	progress *meter
	offset   int64 // of the input's bytes read, and those of the inputs before

	from, to int // data
	ended    bool
	pending  []byte // a record that its user has not dealt with
}

// left returns how many bytes have been read and not used.
func (s *scanner) left() int { return s.to - s.from }

// next returns the next record, without its frame, valid until the next call. At
// the end the error is io.EOF.
func (s *scanner) next() ([]byte, error) {
	for {
		data := s.mem[s.from:s.to]
		if _, _, size := s.l.first(data); size != 0 {
			s.from += size
			return s.l.record(data[:size]), nil
		}
		if s.l.needs(data) > uint64(len(s.mem)) || len(data) == len(s.mem) && !s.ended {
			return nil, &RecordError{Offset: s.offset - int64(len(data)), Max: s.l.maxStored}
		}
		if s.ended {
			if len(data) == 0 {
				return nil, io.EOF
			}
			if s.l.kind != kindLines {
				return nil, fmt.Errorf("freehold: extsort: the input ends within a record, %d bytes after its beginning: %w", len(data), io.ErrUnexpectedEOF)
			}
			s.from = s.to
			return data, nil
		}
		if s.from > 0 {
			s.to = copy(s.mem, data)
			s.from = 0
		}
		n, err := io.ReadFull(s.in, s.mem[s.to:min(len(s.mem), s.to+s.chunk)])
		s.to += n
		s.offset += int64(n)
		s.progress.read(int64(n))
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			s.ended = true
		} else if err != nil {
			return nil, err
		}
	}
}

// store writes a record and its key to dst, in stored form, and returns its size:
// 0 if there is no room.
func (l *layout) store(dst, record []byte) (size int, err error) {
	room := dst[keyedBytes:]
	key := l.key(room[:0:len(room)], record)
	if len(key) > len(room) || len(record) > len(room)-len(key) {
		return 0, nil
	}
	if uint64(len(key)) > math.MaxInt32 || uint64(len(record)) > math.MaxInt32 {
		return 0, nil
	}
	copy(room, key) // does nothing if the key was appended to dst
	copy(room[len(key):], record)
	binary.LittleEndian.PutUint32(dst, uint32(len(key)))
	binary.LittleEndian.PutUint32(dst[4:], uint32(len(record)))
	return keyedBytes + len(key) + len(record), nil
}
