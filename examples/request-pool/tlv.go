// TLV: messages of type, length and value.
//
//	+------+--------+------------------- ... -+------+--------+---- ... -+
//	| type | length | value                   | type | length | value    |
//	+------+--------+------------------- ... -+------+--------+---- ... -+
//	 1 byte  4 bytes  length bytes
//
// Lengths are big-endian. The value of a type with the bit Nested is a message.

package main

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/freehold-go/freehold"
)

const (
	// Nested is set in types whose value is a message.
	Nested = 0x80

	headerBytes = 5
	maxDepth    = 32 // levels of nested messages
)

// Builder builds a message in memory from an allocator, which owns it. It keeps the
// first error; later calls are no-ops.
type Builder struct {
	memory freehold.Allocator
	buf    []byte
	open   [maxDepth]int // where the values of the open messages begin
	depth  int
	err    error
}

// NewBuilder returns an empty builder.
func NewBuilder(memory freehold.Allocator) *Builder { return &Builder{memory: memory} }

// Begin opens a nested message, which contains everything up to its End. Its type
// must be Nested.
func (b *Builder) Begin(typ byte) {
	if b.depth == maxDepth {
		b.fail(fmt.Errorf("more than %d messages in each other", maxDepth))
		return
	}
	b.header(typ, 0)
	b.open[b.depth] = len(b.buf)
	b.depth++
}

// End closes the innermost open message.
func (b *Builder) End() {
	if b.err != nil {
		return
	}
	b.depth--
	from := b.open[b.depth]
	length := len(b.buf) - from
	if uint64(length) > math.MaxUint32 {
		b.fail(fmt.Errorf("a message of %d bytes is too long", length))
		return
	}
	binary.BigEndian.PutUint32(b.buf[from-4:], uint32(length))
}

// Uint64 adds a number, in eight bytes.
func (b *Builder) Uint64(typ byte, v uint64) {
	b.header(typ, 8)
	var value [8]byte
	binary.BigEndian.PutUint64(value[:], v)
	b.write(value[:])
}

// Bytes adds bytes.
func (b *Builder) Bytes(typ byte, v []byte) {
	b.header(typ, len(v))
	b.write(v)
}

// Message returns the message, which the allocator owns, or the first error.
func (b *Builder) Message() ([]byte, error) {
	if b.err != nil {
		return nil, b.err
	}
	return b.buf, nil
}

func (b *Builder) header(typ byte, length int) {
	if uint64(length) > math.MaxUint32 {
		b.fail(fmt.Errorf("a value of %d bytes is too long", length))
	}
	var h [headerBytes]byte
	h[0] = typ
	binary.BigEndian.PutUint32(h[1:], uint32(length))
	b.write(h[:])
}

func (b *Builder) write(v []byte) {
	if b.err == nil {
		b.buf, b.err = freehold.Append(b.memory, b.buf, v...)
	}
}

func (b *Builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// A FormatError says where bytes are not a message.
type FormatError struct {
	Offset int // in bytes, from the start of the outermost message
	What   string
}

func (e *FormatError) Error() string { return fmt.Sprintf("offset %d: %s", e.Offset, e.What) }

// Decoder iterates over a message. Values are parts of it; nothing is copied.
type Decoder struct {
	rest   []byte
	offset int // of rest
	depth  int
	err    error

	typ   byte
	value []byte
}

// NewDecoder returns a decoder before the first type of a message.
func NewDecoder(message []byte) *Decoder { return &Decoder{rest: message} }

// Next advances to the next element and reports whether there is one.
func (d *Decoder) Next() bool {
	if d.err != nil || len(d.rest) == 0 {
		return false
	}
	if len(d.rest) < headerBytes {
		return d.fail(d.offset, fmt.Sprintf("a header of %d bytes is cut off after %d", headerBytes, len(d.rest)))
	}
	length := binary.BigEndian.Uint32(d.rest[1:])
	if left := len(d.rest) - headerBytes; uint64(length) > uint64(left) {
		return d.fail(d.offset, fmt.Sprintf("a value of %d bytes, and %d are left", length, left))
	}
	end := headerBytes + int(length)
	d.typ, d.value = d.rest[0], d.rest[headerBytes:end:end]
	d.rest = d.rest[end:]
	d.offset += end
	return true
}

// Type returns the type of the current element.
func (d *Decoder) Type() byte { return d.typ }

// Bytes returns its value.
func (d *Decoder) Bytes() []byte { return d.value }

// Uint64 returns its value as a number, which must have eight bytes.
func (d *Decoder) Uint64() uint64 {
	if len(d.value) != 8 {
		d.fail(d.offset-len(d.value), fmt.Sprintf("a number of %d bytes, not 8", len(d.value)))
		return 0
	}
	return binary.BigEndian.Uint64(d.value)
}

// Inside returns a decoder of its value, which must be Nested. That decoder keeps
// its own errors.
func (d *Decoder) Inside() Decoder {
	in := Decoder{rest: d.value, offset: d.offset - len(d.value), depth: d.depth + 1}
	switch {
	case d.typ&Nested == 0:
		in.fail(in.offset, fmt.Sprintf("type %#x has no message inside", d.typ))
	case in.depth > maxDepth:
		in.fail(in.offset, fmt.Sprintf("more than %d messages in each other", maxDepth))
	}
	return in
}

// Err returns the first error, a *FormatError; nil if there was none.
func (d *Decoder) Err() error { return d.err }

// fail keeps the first error and returns false.
func (d *Decoder) fail(offset int, what string) bool {
	if d.err == nil {
		d.err = &FormatError{offset, what}
	}
	return false
}
