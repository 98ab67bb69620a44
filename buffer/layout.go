// Layout: how records follow each other in a buffer.
//
// A frame is a record with its length, which is little-endian:
//
//	| length, 4 B | record | zeros, up to a multiple of align |
//	              ^ a multiple of align
//
// The first frame is at first(), so that every record is aligned. Records of fixed size have no
// lengths and no gaps: their frame is the record. With align 1 frames have the format
// extsort.LengthPrefixed. Long lengths have 8 bytes and are big-endian.

package buffer

import (
	"encoding/binary"
	"fmt"
	"math"
)

const (
	lengthBytes = 4
	longBytes   = 8
	maxRecord   = min(math.MaxUint32, math.MaxInt-headerBytes) // bytes of the longest record
)

type layout struct {
	fixed int // bytes of every record; 0 if each has its length
	align int // of records in frames, a power of two
	head  int // bytes of the length: 0, lengthBytes or longBytes
}

func layoutOf(o *RecordsOptions) layout {
	l := layout{fixed: o.RecordBytes, align: max(o.Align, 1)}
	switch {
	case o.RecordBytes != 0:
	case o.LongLengths:
		l.head = longBytes
	default:
		l.head = lengthBytes
	}
	return l
}

// first returns the offset of the first frame.
func (l layout) first() int { return -l.head & (l.align - 1) }

// frameOf returns the size of the frame of a record of n bytes.
func (l layout) frameOf(n int) int {
	if l.fixed != 0 {
		return n
	}
	return (l.head + n + l.align - 1) &^ (l.align - 1)
}

// put writes the length and the zeros of the frame of a record of n bytes.
func (l layout) put(frame []byte, n int) {
	switch l.head {
	case lengthBytes:
		binary.LittleEndian.PutUint32(frame, uint32(n))
	case longBytes:
		binary.BigEndian.PutUint64(frame, uint64(n))
	}
	clear(frame[l.head+n:])
}

// length returns the length at the beginning of frame.
func (l layout) length(frame []byte) uint64 {
	if l.head == longBytes {
		return binary.BigEndian.Uint64(frame)
	}
	return uint64(binary.LittleEndian.Uint32(frame))
}

// frame returns the size of the frame at the beginning of data. It panics if data ends before
// the frame's length does.
func (l layout) frame(data []byte) int {
	if l.fixed != 0 {
		return l.fixed
	}
	return l.frameOf(int(l.length(data)))
}

// record returns the record in the frame at the beginning of data, which must be whole: see
// check.
func (l layout) record(data []byte) []byte {
	if l.fixed != 0 {
		return data[:l.fixed:l.fixed]
	}
	end := l.head + int(l.length(data))
	return data[l.head:end:end]
}

// check returns the size of the frame at offset at of data, or an error if there is no whole
// frame.
func (l layout) check(data []byte, at int) (int, error) {
	rest := len(data) - at
	switch {
	case l.fixed != 0 && rest >= l.fixed:
		return l.fixed, nil
	case l.fixed != 0:
		return 0, noRecord(at, "it has %d of %d bytes", rest, l.fixed)
	case rest < l.head:
		return 0, noRecord(at, "its length has %d of %d bytes", rest, l.head)
	}
	n := l.length(data[at:])
	if l.head == longBytes && n > maxRecord {
		return 0, noRecord(at, "its length is %d, and %d is the most", n, uint64(maxRecord))
	}
	if n > uint64(rest-l.head) || l.frameOf(int(n)) > rest {
		return 0, noRecord(at, "its length is %d, and %d bytes are left", n, rest-l.head)
	}
	return l.frameOf(int(n)), nil
}

// noRecord returns the error for an offset without a whole frame.
func noRecord(at int, format string, args ...any) error {
	return fmt.Errorf("freehold: buffer: no record begins at offset %d, or it is %w: %s", at, ErrCorrupt, fmt.Sprintf(format, args...))
}

// scan checks the frames of data with offsets in [from, to). It calls visit with the offset and
// the size of each.
func (l layout) scan(data []byte, from, to int, visit func(at, size int)) error {
	if len(data) == 0 {
		return nil
	}
	for at := from; at < to || at > len(data); {
		size, err := l.check(data, min(at, len(data)))
		if err != nil {
			return err
		}
		visit(at, size)
		at += size
	}
	return nil
}
