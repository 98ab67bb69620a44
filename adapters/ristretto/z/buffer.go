// Buffer: bytes that grow, in memory or in a file. See slices.go for records with lengths.

package z

import (
	"errors"
	"fmt"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/buffer"
)

// padding is the offset of a Buffer's data, which is 0 for a Buffer over a slice.
const padding = 8

// Buffer is bytes that grow. It is a [buffer.Buffer] with offsets that begin at 8. It is not safe
// for concurrent use. Calls panic if memory, or the disk, is full.
type Buffer struct {
	b       *buffer.Buffer // nil for a Buffer over a slice
	slice   []byte         // of NewBufferSlice
	padding int
	maxSize int // of LenWithPadding; 0 means no limit
}

// NewBuffer returns an empty buffer in memory, with room for some bytes. The tag is for readers of
// the code. Release frees it.
func NewBuffer(capacity int, tag string) *Buffer {
	return freehold.Must(newBuffer(buffer.New(blocks(), nil), capacity))
}

// NewBufferTmp returns an empty buffer in a temporary file without a name. An empty dir means the
// directory for temporary files.
func NewBufferTmp(dir string, capacity int) (*Buffer, error) {
	return newBuffer(buffer.New(blocks(), &buffer.Options{SpillAfter: 1, Dir: dir}), capacity)
}

// NewBufferPersistent returns a buffer in a file, with the bytes that Release left there: see
// [buffer.Open]. It reads no files of ristretto.
func NewBufferPersistent(path string, capacity int) (*Buffer, error) {
	b, err := buffer.Open(path, nil)
	if err != nil {
		return nil, err
	}
	return newBuffer(b, capacity)
}

// newBuffer makes room in b, or closes it.
func newBuffer(b *buffer.Buffer, capacity int) (*Buffer, error) {
	if err := b.Grow(max(capacity, 0)); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return &Buffer{b: b, padding: padding}, nil
}

// NewBufferSlice returns a buffer over the caller's slice, to read. It cannot grow, and needs no
// Release.
func NewBufferSlice(slice []byte) *Buffer { return &Buffer{slice: slice} }

// WithAutoMmap makes the buffer move to a temporary file in a directory beyond threshold bytes; 0
// means never. It panics if it is not in memory.
func (b *Buffer) WithAutoMmap(threshold int, path string) *Buffer {
	if b.b == nil || b.b.InFile() {
		panic("freehold: z.Buffer.WithAutoMmap: the buffer is not in memory")
	}
	old := b.b
	room := old.Cap()
	if threshold > 0 {
		room = max(min(room, threshold), old.Len())
	}
	z := freehold.Must(newBuffer(buffer.New(blocks(), &buffer.Options{SpillAfter: threshold, Dir: path}), room))
	freehold.Must(z.b.Write(old.Bytes())) // for which there is room
	_ = old.Close()                       // in memory, it has no error
	b.b = z.b
	return b
}

// WithMaxSize sets a limit of size bytes, padding included: a call that would exceed it panics.
func (b *Buffer) WithMaxSize(size int) *Buffer {
	b.maxSize = size
	return b
}

// Grow makes room for n more bytes.
func (b *Buffer) Grow(n int) {
	b.mustTake(n)
	if err := b.b.Grow(n); err != nil {
		panic(err)
	}
}

// mustTake panics if b cannot have n more bytes, however much memory there is.
func (b *Buffer) mustTake(n int) {
	if b.b == nil {
		panic("freehold: z.Buffer.Grow: the buffer is over a slice")
	}
	if size := b.LenWithPadding(); b.maxSize > 0 && n > b.maxSize-size {
		panic(fmt.Sprintf("freehold: z.Buffer: %d bytes more than %d pass the maximum of %d", n, size, b.maxSize))
	}
}

// Allocate appends n bytes, contents undefined, and returns them. They are valid until the next
// call that may grow the buffer.
func (b *Buffer) Allocate(n int) []byte {
	b.Grow(n)
	return freehold.Must(b.b.Extend(n))
}

// AllocateOffset is Allocate that returns the offset.
func (b *Buffer) AllocateOffset(n int) int {
	b.Allocate(n)
	return b.LenWithPadding() - n
}

// Write appends p, which may be a part of the buffer. The error is nil.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mustTake(len(p))
	return freehold.Must(b.b.Write(p)), nil
}

// Bytes returns the data, valid until the next call that may grow the buffer.
func (b *Buffer) Bytes() []byte {
	if b.b == nil {
		return b.slice
	}
	return b.b.Bytes()
}

// Data returns the memory from an offset on, to the end of the capacity.
func (b *Buffer) Data(offset int) []byte {
	if b.b == nil {
		return b.slice[offset:]
	}
	n := b.b.Len()
	freehold.Must(b.b.Extend(b.b.Cap() - n))
	all := b.b.Bytes()
	b.b.Truncate(n)
	return all[offset-b.padding:]
}

// StartOffset returns the offset of the first byte: 8, or 0 over a slice.
func (b *Buffer) StartOffset() int { return b.padding }

// IsEmpty reports whether the buffer has no bytes.
func (b *Buffer) IsEmpty() bool { return len(b.Bytes()) == 0 }

// LenNoPadding returns the number of bytes.
func (b *Buffer) LenNoPadding() int { return len(b.Bytes()) }

// LenWithPadding returns the offset of the next byte.
func (b *Buffer) LenWithPadding() int { return len(b.Bytes()) + b.padding }

// Reset drops all bytes and keeps the memory.
func (b *Buffer) Reset() {
	if b.b == nil {
		b.slice = b.slice[:0]
		return
	}
	b.b.Clear()
}

// Release frees the memory. Then a temporary file is gone, and a persistent one is complete. The
// error is from the persistent file.
func (b *Buffer) Release() error {
	if b == nil || b.b == nil {
		return nil
	}
	return b.b.Close()
}
