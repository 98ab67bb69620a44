// Formats: where a record begins and ends, and which of its bytes are compared.
//
// A record has three forms:
//
//	raw     as it is in the input and in the output, with its frame
//	record  without the frame: what Key and an iterator's user see
//	stored  as it is in memory and in temporary files
//
// Without Options.Key the stored form is the raw one. With it, the key is stored
// in front of the record:
//
//	| bytes of key u32 | bytes of record u32 | key | record |
//
// Either way the bytes to compare are consecutive. So the sort itself knows
// byte strings only.

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
	kindDefault kind = iota // of the zero Format: lines that end with '\n'
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

// Lines is the format of records that end with a byte, such as '\n'. A record does
// not include that byte. The last one of an input may lack it; the output has it.
func Lines(end byte) Format { return Format{kind: kindLines, end: end} }

// Fixed is the format of records of size bytes each, compared as a whole. It
// panics unless size is positive.
func Fixed(size int) Format {
	arg.AtLeast("extsort.Fixed", "size", size, 1)
	return FixedBy(size, 0, size)
}

// FixedBy is the format of records of size bytes each, compared by the n bytes
// from offset at. Records with equal keys keep their order. It panics unless
// those bytes are in the record.
func FixedBy(size, at, n int) Format {
	arg.Range("extsort.FixedBy", "size", size, 1, math.MaxInt32)
	arg.Range("extsort.FixedBy", "offset", at, 0, size)
	arg.Range("extsort.FixedBy", "key length", n, 0, size-at)
	return Format{kind: kindFixed, size: size, keyAt: at, keyN: n}
}

// LengthPrefixed is the format of records that each follow their length in bytes,
// as a little-endian uint32 that does not count itself. It is what package buffer's
// Records are in their Buffer, unless they are aligned.
func LengthPrefixed() Format { return Format{kind: kindFramed} }

// layout is what a sort knows about its records.
type layout struct {
	Format
	raw        kind // Format's; kind is that of the stored form
	key        func(dst, record []byte) []byte
	thenRecord bool
	descending bool
	unique     bool
	ties       bool // equal keys may differ elsewhere, so their order shows
	ending     []byte
	maxStored  int // bytes of the largest record, in stored form
}

func newLayout(o *Options) layout {
	l := layout{Format: o.Format, key: o.Key, thenRecord: o.ThenRecord, descending: o.Reverse, unique: o.Unique}
	if l.kind == kindDefault {
		l.Format = Lines('\n')
	}
	l.raw, l.ending = l.kind, []byte{l.end}
	if l.key != nil {
		l.kind = kindKeyed
	}
	l.ties = l.kind == kindKeyed && !l.thenRecord || l.kind == kindFixed && l.keyN < l.size
	return l
}

// ofInput returns the layout of raw records.
func (l *layout) ofInput() *layout {
	raw := *l
	raw.kind = l.raw
	return &raw
}

// first finds the first stored record of b: its size, and where its bytes to
// compare are. Size 0 means that b holds no whole record.
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

// needs returns the size of the raw record that b begins with if b tells, else 0.
func (l *layout) needs(b []byte) uint64 {
	if l.kind == kindFramed && len(b) >= lengthBytes {
		return lengthBytes + uint64(binary.LittleEndian.Uint32(b))
	}
	return 0
}

// mayEnd reports whether a record may end in b, which follows the beginning of one.
func (l *layout) mayEnd(b []byte) bool {
	return l.kind != kindLines || bytes.IndexByte(b, l.end) >= 0
}

// frameBytes returns how many bytes a stored record has beside its record and its
// key.
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

// keyedLengths returns the lengths before a stored key. Both were checked when
// they were written.
func keyedLengths(b []byte) (key, n int) {
	return int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:]))
}

func (l *layout) compared(key, n int) int {
	if l.thenRecord {
		return key + n
	}
	return key
}

// stored returns the stored record whose bytes to compare are the n at text[at:].
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

// record returns the record in a stored one.
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

// eachRaw calls f with the pieces of a stored record's raw form.
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

// frame returns what is around the record of a stored one with a key in raw form.
// The length in front of it is that of LengthPrefixed.
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

// word returns eight bytes of a record's compared bytes from offset skip, zeros
// after its end, as a number whose order is that of the sort.
func (l *layout) word(key []byte, skip int) uint64 {
	w := keysort.Word(key, skip)
	if l.descending {
		return ^w
	}
	return w
}
