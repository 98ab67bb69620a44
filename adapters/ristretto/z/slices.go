// Slices: records in a Buffer. 8 bytes before each have its length, big-endian.

package z

import (
	"context"
	"encoding/binary"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/buffer"
)

const lengthBytes = 8

// LessFunc reports whether a is before b.
type LessFunc func(a, b []byte) bool

// SliceAllocate appends a slice of sz bytes, contents undefined, and returns it. It is valid until
// the next call that may grow the buffer.
func (b *Buffer) SliceAllocate(sz int) []byte {
	frame := b.Allocate(lengthBytes + sz)
	binary.BigEndian.PutUint64(frame, uint64(sz))
	return frame[lengthBytes:]
}

// WriteSlice appends a slice with the contents of slice, which is not a part of the buffer.
func (b *Buffer) WriteSlice(slice []byte) { copy(b.SliceAllocate(len(slice)), slice) }

// Slice returns the slice at an offset and the offset of the next one, or -1 if it is the last. It
// returns nil and -1 at the end.
func (b *Buffer) Slice(offset int) (slice []byte, next int) {
	data := b.Bytes()
	at := offset - b.padding
	if at >= len(data) {
		return nil, -1
	}
	end := at + lengthBytes + int(binary.BigEndian.Uint64(data[at:]))
	slice = data[at+lengthBytes : end]
	if end >= len(data) {
		return slice, -1
	}
	return slice, end + b.padding
}

// SliceIterate calls f with each non-empty slice. It stops at f's first error and returns it.
func (b *Buffer) SliceIterate(f func(slice []byte) error) error {
	for next := b.StartOffset(); next >= 0; {
		var slice []byte
		slice, next = b.Slice(next)
		if len(slice) == 0 {
			continue
		}
		if err := f(slice); err != nil {
			return err
		}
	}
	return nil
}

// SliceOffsets returns the offset of each slice.
func (b *Buffer) SliceOffsets() []int {
	var offsets []int
	for next := b.StartOffset(); next >= 0; _, next = b.Slice(next) {
		offsets = append(offsets, next)
	}
	return offsets
}

// SortSlice sorts the slices. Equal slices keep their order.
func (b *Buffer) SortSlice(less func(left, right []byte) bool) {
	b.SortSliceBetween(b.StartOffset(), b.LenWithPadding(), less)
}

// SortSliceBetween sorts the slices between two offsets, with half of their size as extra memory.
// It panics if there are other bytes between the offsets. It calls less only from the caller's
// goroutine, as ristretto does; [buffer.Records.Sort] uses all processors.
func (b *Buffer) SortSliceBetween(start, end int, less LessFunc) {
	if start >= end {
		return
	}
	part := buffer.Over(blocks(), b.Bytes()[start-b.padding:end-b.padding])
	defer part.Close()
	records := freehold.Must(buffer.NewRecords(part, &buffer.RecordsOptions{LongLengths: true}))
	err := records.Sort(context.Background(), func(l, r []byte) int {
		switch {
		case less(l, r):
			return -1
		case less(r, l):
			return 1
		}
		return 0
	}, &buffer.SortOptions{Parallel: 1})
	if err != nil {
		panic(err)
	}
}
