// The interfaces of package io.

package buffer

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
)

const minRead = 512 // bytes of room that ReadFrom tries to give a reader

// Write appends p, which may be a part of the buffer. It fails as [Buffer.Extend] does. On an
// error it appends nothing.
func (b *Buffer) Write(p []byte) (int, error) { return b.write("buffer.Buffer.Write", p) }

func (b *Buffer) write(call string, p []byte) (int, error) {
	at, inside := b.offsetOf(p)
	to, err := b.extend(call, len(p))
	if err != nil {
		return 0, err
	}
	if inside {
		p = b.mem[at:][:len(p)]
	}
	if b.file == nil {
		return copy(to, p), nil
	}
	if err := b.guarded(func() error { copy(to, p); return nil }); err != nil {
		b.n -= len(p)
		return 0, err
	}
	return len(p), nil
}

// WriteString is Write of a string.
func (b *Buffer) WriteString(s string) (int, error) {
	return b.write("buffer.Buffer.WriteString", unsafe.Slice(unsafe.StringData(s), len(s)))
}

// offsetOf returns the offset of p in b's memory, and whether p is there. If it is, growing moves
// p.
func (b *Buffer) offsetOf(p []byte) (at uintptr, inside bool) {
	at = uintptr(unsafe.Pointer(unsafe.SliceData(p))) - uintptr(unsafe.Pointer(unsafe.SliceData(b.mem)))
	return at, at < uintptr(len(b.mem))
}

// WriteByte appends a byte. It fails as Write does.
func (b *Buffer) WriteByte(c byte) error {
	const call = "buffer.Buffer.WriteByte"
	if b.file != nil {
		_, err := b.write(call, []byte{c})
		return err
	}
	to, err := b.extend(call, 1)
	if err == nil {
		to[0] = c
	}
	return err
}

// ReadFrom appends all data of r. It returns the number of bytes appended, and the error of r or
// of growing; the bytes read before it stay. If the buffer has no room and cannot grow, or would
// have to spill, it reads one byte to know whether r has ended. That byte is lost if the buffer
// cannot take it. r must not be a [Reader] of b: it would read its own output forever.
func (b *Buffer) ReadFrom(r io.Reader) (int64, error) {
	const call = "buffer.Buffer.ReadFrom"
	b.mustBeOpen(call)
	arg.NotNil(call, "r", r)
	begin := b.n
	var one [1]byte
	for {
		room := b.roomToRead()
		full := len(room) == 0
		if full {
			room = one[:]
		}
		err := b.guarded(func() error {
			n, err := r.Read(room)
			if n < 0 || n > len(room) {
				return fmt.Errorf("freehold: buffer: a reader returned %d bytes for %d", n, len(room))
			}
			if !full {
				b.n += n
			} else if _, refused := b.write(call, room[:n]); refused != nil {
				return refused
			}
			return err
		})
		if err == io.EOF {
			return int64(b.n - begin), nil
		}
		if err != nil {
			return int64(b.n - begin), err
		}
	}
}

// roomToRead returns the free capacity. It grows it to minRead bytes, unless the buffer would
// spill for that or cannot grow.
func (b *Buffer) roomToRead() []byte {
	if b.file != nil || b.opts.SpillAfter == 0 || b.n <= b.opts.SpillAfter-minRead {
		_ = b.grow("buffer.Buffer.ReadFrom", minRead) // write returns the error if r has more
	}
	return b.mem[b.n:]
}

// WriteTo writes the data to w in one Write. Calls that change the buffer's capacity during it
// panic. The buffer keeps the data. If w is the buffer itself, it has the data twice afterwards.
func (b *Buffer) WriteTo(w io.Writer) (int64, error) {
	b.mustBeOpen("buffer.Buffer.WriteTo")
	arg.NotNil("buffer.Buffer.WriteTo", "w", w)
	return b.writeTo(w, 0)
}

// writeTo writes the data from offset at on.
func (b *Buffer) writeTo(w io.Writer, at int) (written int64, err error) {
	data := b.Bytes()[at:]
	if len(data) == 0 {
		return 0, nil
	}
	if w != io.Writer(b) { // b.Write allows an argument in its own memory
		b.writing.Add(1)
		defer b.writing.Add(-1)
	}
	err = b.guarded(func() error {
		n, err := w.Write(data)
		written = int64(n)
		if err == nil && n < len(data) {
			return io.ErrShortWrite
		}
		return err
	})
	return written, err
}

// ReadAt copies the data from offset off on to p. It returns [io.EOF] if it copies fewer than
// len(p) bytes.
func (b *Buffer) ReadAt(p []byte, off int64) (n int, err error) {
	b.mustBeOpen("buffer.Buffer.ReadAt")
	if off < 0 {
		return 0, errors.New("freehold: buffer: ReadAt of a negative offset")
	}
	if off < int64(b.n) {
		err = b.guarded(func() error { n = copy(p, b.Bytes()[off:]); return nil })
	}
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// Reader reads a buffer from its beginning, or from the place that Seek sets. It also reads data
// that is appended later. It implements [io.Reader], [io.ByteReader], [io.Seeker] and
// [io.WriterTo]. A buffer may have any number of readers, each used by one goroutine at a time.
type Reader struct {
	b  *Buffer
	at int
}

// NewReader returns a reader of the buffer's data.
func (b *Buffer) NewReader() *Reader {
	b.mustBeOpen("buffer.Buffer.NewReader")
	return &Reader{b: b}
}

// Read copies the next bytes to p. At the end of the data it returns [io.EOF].
func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.b.ReadAt(p, int64(r.at))
	r.at += n
	if n > 0 && err == io.EOF {
		err = nil
	}
	if len(p) == 0 {
		err = nil
	}
	return n, err
}

// ReadByte returns the next byte, or [io.EOF].
func (r *Reader) ReadByte() (byte, error) {
	var c [1]byte
	if _, err := r.Read(c[:]); err != nil {
		return 0, err
	}
	return c[0], nil
}

// Seek sets the place of the next read, and returns it. It may be beyond the end of the data, but
// not negative.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += int64(r.at)
	case io.SeekEnd:
		offset += int64(r.b.n)
	default:
		return 0, fmt.Errorf("freehold: buffer: Seek with whence %d", whence)
	}
	if offset < 0 || int64(int(offset)) != offset {
		return 0, fmt.Errorf("freehold: buffer: Seek to offset %d", offset)
	}
	r.at = int(offset)
	return offset, nil
}

// WriteTo writes the rest of the data to w, as [Buffer.WriteTo] does.
func (r *Reader) WriteTo(w io.Writer) (int64, error) {
	r.b.mustBeOpen("buffer.Reader.WriteTo")
	arg.NotNil("buffer.Reader.WriteTo", "w", w)
	n, err := r.b.writeTo(w, min(r.at, r.b.n))
	r.at += int(n)
	return n, err
}
