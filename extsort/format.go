// Formats: where records begin and end, and which of their bytes are compared.
//
// A record has three forms:
//
//	raw     in the input and in the output, with its line end or length
//	record  without those: the form that Key and the user of an iterator see
//	stored  in memory and in temporary files
//
// Without Options.Key the stored form is the raw one. With it, the key is in front of the
// record:
//
//	| bytes of key u32 | bytes of record u32 | key | record |
//
// In both forms the bytes to compare are consecutive, so sorting and merging compare byte
// strings only. With Options.ThenRecord they are the key and the record. To keep a key that is
// a prefix of another one in front of it, whatever the records are, a stored key then ends with
// 0 0, and a 0 in it becomes 0 255.

package extsort

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/keysort"
)

type kind uint8

const (
	kindDefault kind = iota // the zero Format: Lines('\n')
	kindLines
	kindFixed
	kindFramed
	kindKeyed // stored only
)

const (
	lengthBytes = 4 // before a record of LengthPrefixed
	keyedBytes  = 8 // before a stored key
)

// Format says where a record begins and ends. The zero Format is Lines('\n').
type Format struct {
	kind        kind
	end         byte
	size        int
	keyAt, keyN int
}

// Lines is the format of records that end with the byte end, such as '\n'. A record does not
// include that byte. The last record of an input may lack it; the output has it.
func Lines(end byte) Format { return Format{kind: kindLines, end: end} }

// Fixed is the format of records of size bytes each, compared as a whole. It panics unless
// size is positive.
func Fixed(size int) Format {
	arg.AtLeast("extsort.Fixed", "size", size, 1)
	return FixedBy(size, 0, size)
}

// FixedBy is the format of records of size bytes each, compared by their n bytes from offset
// at. Records that are equal in these keep the order of the input. It panics unless a record has
// those bytes.
func FixedBy(size, at, n int) Format {
	arg.Range("extsort.FixedBy", "size", size, 1, math.MaxInt32)
	arg.Range("extsort.FixedBy", "offset", at, 0, size)
	arg.Range("extsort.FixedBy", "key length", n, 0, size-at)
	return Format{kind: kindFixed, size: size, keyAt: at, keyN: n}
}

// LengthPrefixed is the format of records with their length in front: a little-endian uint32
// that does not count itself. The Records of package buffer have this format, unless they are
// aligned.
func LengthPrefixed() Format { return Format{kind: kindFramed} }

// A layout is the form and the order of stored records.
type layout struct {
	Format          // of the stored form
	raw        kind // of the raw form
	key        func(dst, record []byte) []byte
	thenRecord bool
	descending bool
	unique     bool
	ties       bool   // records with equal keys may differ, so the sort must be stable
	ending     []byte // of raw lines
	maxStored  int    // bytes of the longest stored record
}

// ofInput returns the layout of raw records.
func (l *layout) ofInput() *layout {
	raw := *l
	raw.kind = l.raw
	return &raw
}

// first finds the first stored record of b. It returns its size and the n bytes to compare, at
// offset at. Size 0 means that b holds no whole record.
func (l *layout) first(b []byte) (at, n, size int) {
	switch l.kind {
	case kindLines:
		if i := bytes.IndexByte(b, l.end); i >= 0 {
			return 0, i, i + 1
		}
	case kindFixed:
		if len(b) >= l.size {
			return l.keyAt, l.keyN, l.size
		}
	case kindFramed:
		if len(b) >= lengthBytes {
			if n := uint(binary.LittleEndian.Uint32(b)); n <= uint(len(b)-lengthBytes) {
				return lengthBytes, int(n), lengthBytes + int(n)
			}
		}
	case kindKeyed:
		if len(b) >= keyedBytes {
			key, n := keyedLengths(b)
			if size = keyedBytes + key + n; size <= len(b) {
				return keyedBytes, l.compared(key, n), size
			}
		}
	}
	return 0, 0, 0
}

// needs returns the size of the raw record at the beginning of b, or 0 if b does not tell.
func (l *layout) needs(b []byte) uint64 {
	if l.kind == kindFramed && len(b) >= lengthBytes {
		return lengthBytes + uint64(binary.LittleEndian.Uint32(b))
	}
	return 0
}

// mayEnd reports whether a raw record may end in b, which has some of its bytes.
func (l *layout) mayEnd(b []byte) bool {
	return l.kind != kindLines || bytes.IndexByte(b, l.end) >= 0
}

// frameBytes returns how many bytes the stored form adds to a record and its key.
func (l *layout) frameBytes() int {
	switch l.kind {
	case kindLines:
		return 1
	case kindFramed:
		return lengthBytes
	case kindKeyed:
		return keyedBytes
	}
	return 0
}

// keyedLengths returns the lengths before a stored key. store has checked both.
func keyedLengths(b []byte) (key, n int) {
	return int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:]))
}

// compared returns how many bytes to compare of a key and a record of n bytes.
func (l *layout) compared(key, n int) int {
	if l.thenRecord {
		return key + n
	}
	return key
}

// stored returns the stored record whose n bytes to compare are at text[at:].
func (l *layout) stored(text []byte, at, n int) []byte {
	switch l.kind {
	case kindLines:
		return text[at : at+n+1]
	case kindFixed:
		return text[at-l.keyAt : at-l.keyAt+l.size]
	case kindFramed:
		return text[at-lengthBytes : at+n]
	}
	key, n := keyedLengths(text[at-keyedBytes:])
	return text[at-keyedBytes : at+key+n]
}

// record returns the record in its stored form.
func (l *layout) record(stored []byte) []byte {
	switch l.kind {
	case kindLines:
		return stored[:len(stored)-1]
	case kindFramed:
		return stored[lengthBytes:]
	case kindKeyed:
		key, _ := keyedLengths(stored)
		return stored[keyedBytes+key:]
	}
	return stored
}

// appendRaw appends the raw form of a stored record with a key to dst.
func (l *layout) appendRaw(dst, stored []byte) []byte {
	head, tail := l.frame(stored)
	return append(append(append(dst, head...), l.record(stored)...), tail...)
}

// eachRaw calls f with the raw form of a stored record, in pieces.
func (l *layout) eachRaw(stored []byte, f func(b []byte) error) error {
	if l.kind != kindKeyed {
		return f(stored)
	}
	head, tail := l.frame(stored)
	for _, b := range [...][]byte{head, l.record(stored), tail} {
		if err := f(b); err != nil {
			return err
		}
	}
	return nil
}

// frame returns the bytes before and after a record in raw form. stored is the record with its
// key; the length in it is also the length of LengthPrefixed.
func (l *layout) frame(stored []byte) (head, tail []byte) {
	switch l.raw {
	case kindLines:
		tail = l.ending
	case kindFramed:
		head = stored[keyedBytes-lengthBytes : keyedBytes]
	}
	return head, tail
}

// compare orders the compared bytes of two records.
func (l *layout) compare(a, b []byte) int {
	if l.descending {
		a, b = b, a
	}
	return bytes.Compare(a, b)
}

// word returns eight bytes of key from offset skip, with zeros after its end, as a number that
// is ordered as the sort orders keys.
func (l *layout) word(key []byte, skip int) uint64 {
	w := keysort.Word(key, skip)
	if l.descending {
		return ^w
	}
	return w
}

// store writes a record and its key to dst in stored form. It returns the size, or 0 if dst has
// no room.
func (l *layout) store(dst, record []byte) (size int) {
	room := dst[keyedBytes:]
	key := l.key(room[:0:len(room)], record)
	if len(key) > len(room) || len(record) > len(room)-len(key) {
		return 0
	}
	if l.thenRecord {
		if key = endKey(room, key); len(record) > len(room)-len(key) || key == nil {
			return 0
		}
	}
	if uint64(len(key)) > math.MaxInt32 || uint64(len(record)) > math.MaxInt32 {
		return 0
	}
	copy(room, key) // a no-op if Key appended the key to room
	copy(room[len(key):], record)
	binary.LittleEndian.PutUint32(dst, uint32(len(key)))
	binary.LittleEndian.PutUint32(dst[4:], uint32(len(record)))
	return keyedBytes + len(key) + len(record)
}

// endKey writes key to room with its zeros escaped and its end appended, and returns it. key may
// be at the beginning of room. endKey returns nil if there is no room.
func endKey(room, key []byte) []byte {
	zeros := bytes.Count(key, []byte{0})
	n := len(key) + zeros + 2
	if n > len(room) {
		return nil
	}
	if zeros == 0 {
		copy(room, key)
	} else {
		to := n - 2
		for i := len(key) - 1; i >= 0; i-- {
			b := key[i]
			if b == 0 {
				to--
				room[to] = 255
			}
			to--
			room[to] = b
		}
	}
	room[n-2], room[n-1] = 0, 0
	return room[:n]
}
