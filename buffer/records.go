// Records: a buffer as a sequence of byte strings. See layout.go for the bytes.

package buffer

import (
	"fmt"
	"iter"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
)

// RecordsOptions sets up [Records]; nil means all defaults.
type RecordsOptions struct {
	// RecordBytes is the size of every record, in bytes. The buffer then has the records
	// and nothing else. 0 means that each record has its own size, which takes 4 bytes
	// in front of it. Negative is a panic.
	RecordBytes int

	// Align is a power of two up to 64. Every record begins at a multiple of it, so that
	// it may be cast to a struct. That takes up to Align-1 bytes a record. 0 means 1.
	// With RecordBytes, Align must divide RecordBytes.
	Align int

	// LongLengths stores lengths in 8 bytes, big-endian, instead of 4, little-endian.
	// With LongLengths and without Align, the buffer has the format of ristretto's
	// z.Buffer. With RecordBytes it is a panic.
	LongLengths bool
}

// Records is a sequence of records in a [Buffer]. A record is 0 to 4 GiB - 1 bytes. A frame is
// the record with the 4 or 8 bytes of its length in front, or the record alone with
// RecordBytes. The offset of a record is the offset of its frame in the buffer. With neither
// Align nor LongLengths the buffer has a format of package extsort: Fixed with RecordBytes, else
// LengthPrefixed.
//
// While Records is in use, no other code may append to the buffer, truncate it or change lengths
// in it. Concurrency rules are as for the Buffer, and slices of records are valid as long as
// slices of the buffer. After the buffer's Close, Len is 0, All and Between yield no records,
// and other methods panic. Read a buffer in a file inside of [Buffer.Guard]; methods with an
// error result return an error if the file was truncated.
type Records struct {
	b      *Buffer
	n      int // records in the buffer
	layout layout
}

// NewRecords returns the records of a buffer, which may be empty. The options must be the same
// as when the records were appended. It reads the lengths of all records. If one exceeds the
// data, the error matches [ErrCorrupt] and has the offset.
func NewRecords(b *Buffer, o *RecordsOptions) (*Records, error) {
	const call = "buffer.NewRecords"
	if b == nil {
		arg.Panicf(call, "buffer is nil")
	}
	b.mustBeOpen(call)
	if o == nil {
		o = &RecordsOptions{}
	}
	arg.AtLeast(call, "RecordBytes", o.RecordBytes, 0)
	align := max(o.Align, 1)
	if o.Align != 0 {
		arg.Align(call, o.Align)
		arg.Range(call, "alignment", align, 1, blockAlign)
	}
	if o.RecordBytes%align != 0 {
		arg.Panicf(call, "RecordBytes %d, want a multiple of the alignment %d", o.RecordBytes, align)
	}
	if o.RecordBytes != 0 && o.LongLengths {
		arg.Panicf(call, "LongLengths with RecordBytes %d: such records have no lengths", o.RecordBytes)
	}
	r := &Records{b: b, layout: layoutOf(o)}
	var err error
	if r.n, err = r.count(r.layout.first()); err != nil {
		return nil, err
	}
	return r, nil
}

// count returns the number of records from an offset on.
func (r *Records) count(from int) (n int, err error) {
	rest := r.b.n - from
	if size := r.layout.fixed; size != 0 && rest%size == 0 {
		return rest / size, nil
	}
	err = r.b.guarded(func() error {
		return r.layout.scan(r.b.Bytes(), from, r.End(), func(int, int) { n++ })
	})
	return n, err
}

// Len returns the number of records.
func (r *Records) Len() int {
	if r.b.closed {
		return 0
	}
	return r.n
}

// End returns the offset that the next record to be appended will have.
func (r *Records) End() int { return max(r.b.n, r.layout.first()) }

// Append appends a record of n bytes with undefined contents and returns it, to fill in place.
// It fails as [Buffer.Extend] does, and if n is more than 4 GiB - 1. On an error it appends
// nothing. With RecordBytes another n is a panic.
func (r *Records) Append(n int) ([]byte, error) { return r.append("buffer.Records.Append", n) }

func (r *Records) append(call string, n int) ([]byte, error) {
	l, b := r.layout, r.b
	if l.fixed != 0 && n != l.fixed || n < 0 {
		r.badSize(call, n)
	}
	if n > maxRecord {
		return nil, fmt.Errorf("freehold: buffer: a record of %d bytes; %d is the most", n, maxRecord)
	}
	begin, gap := b.n, 0
	if begin == 0 {
		gap = l.first()
	}
	frame, err := b.extend(call, gap+l.frameOf(n))
	if err != nil {
		return nil, err
	}
	if b.file == nil {
		clear(frame[:gap])
		l.put(frame[gap:], n)
	} else if err := b.guarded(func() error {
		clear(frame[:gap])
		l.put(frame[gap:], n)
		return nil
	}); err != nil {
		b.n = begin
		return nil, err
	}
	r.n++
	from := gap + l.head
	return frame[from : from+n : from+n], nil
}

//go:noinline
func (r *Records) badSize(call string, n int) {
	arg.AtLeast(call, "size", n, 0)
	arg.Panicf(call, "size %d, want RecordBytes, %d", n, r.layout.fixed)
}

// AppendBytes appends a record with the contents of p, which may be a part of the buffer. It
// fails as Append does.
func (r *Records) AppendBytes(p []byte) error {
	begin := r.b.n
	at, inside := r.b.offsetOf(p)
	to, err := r.append("buffer.Records.AppendBytes", len(p))
	if err != nil {
		return err
	}
	if inside {
		p = r.b.mem[at:][:len(p)]
	}
	if r.b.file == nil {
		copy(to, p)
		return nil
	}
	if err := r.b.guarded(func() error { copy(to, p); return nil }); err != nil {
		r.b.n = begin
		r.n--
		return err
	}
	return nil
}

// At returns the record at the given offset, which All has yielded. It panics if no record
// begins there.
func (r *Records) At(offset int) []byte {
	if r.b.closed {
		r.b.mustBeOpen("buffer.Records.At")
	}
	data := r.b.Bytes()
	arg.Range("buffer.Records.At", "offset", offset, 0, len(data)-1)
	size, err := r.layout.check(data, offset)
	if err != nil {
		arg.Panicf("buffer.Records.At", "offset %d, where no record begins", offset)
	}
	return r.layout.record(data[offset : offset+size])
}

// All yields the records with their offsets, in order. It does not yield records that are
// appended after the call of All.
func (r *Records) All() iter.Seq2[int, []byte] { return r.Between(0, r.b.n) }

// Between yields the records with offsets in [from, to). from is the offset of a record, or 0, or
// End. to may be any offset up to End. The loop panics at an offset where no record begins.
func (r *Records) Between(from, to int) iter.Seq2[int, []byte] {
	const call = "buffer.Records.Between"
	arg.Range(call, "to", to, 0, r.End())
	arg.Range(call, "from", from, 0, to)
	return func(yield func(int, []byte) bool) {
		for at := max(from, r.layout.first()); at < to; {
			data := r.b.Bytes()
			size, err := r.layout.check(data, at)
			if err != nil {
				arg.Panicf(call, "offset %d, where no record begins: was the buffer written to beside its Records?", at)
			}
			if !yield(at, r.layout.record(data[at:])) {
				return
			}
			at += size
		}
	}
}

// Offsets returns the offset of every record, in order: for At by number, or for binary search.
// The slice is memory of a, an int for each record; free it by [freehold.FreeSlice]. A sort
// makes it stale. a must not be nil; for a slice on the Go heap, collect the offsets of All.
func (r *Records) Offsets(a freehold.Allocator) ([]int, error) {
	const call = "buffer.Records.Offsets"
	r.b.mustBeOpen(call)
	arg.NotNil(call, "allocator", a)
	offsets, err := freehold.MakeSlice[int](a, r.n)
	if err != nil {
		return nil, err
	}
	i := 0
	err = r.scan(r.layout.first(), r.End(), func(at, _ int) {
		if i < len(offsets) {
			offsets[i] = at
		}
		i++
	})
	if err != nil {
		freehold.FreeSlice(a, offsets)
		return nil, err
	}
	return offsets, nil
}

// scan calls visit with the offset and the size of every frame in [from, to). It returns an error
// if the number of frames differs from the number of records appended.
func (r *Records) scan(from, to int, visit func(at, size int)) error {
	n := 0
	err := r.b.guarded(func() error {
		return r.layout.scan(r.b.Bytes(), from, to, func(at, size int) { visit(at, size); n++ })
	})
	if all := from == r.layout.first() && to == r.End(); err == nil && (n > r.n || all && n != r.n) {
		return r.changed(n)
	}
	return err
}

func (r *Records) changed(n int) error {
	return fmt.Errorf("freehold: buffer: the records are %w: there are %d, and %d were appended", ErrCorrupt, n, r.n)
}

// Truncate drops the record at offset, and all records after it. All has yielded the offset, or
// it is End. Truncate reads the lengths of the dropped records. If lengths have changed, it drops
// nothing and the error matches [ErrCorrupt].
func (r *Records) Truncate(offset int) error {
	const call = "buffer.Records.Truncate"
	r.b.mustBeOpen(call)
	if r.b.readOnly() {
		return errReadOnly
	}
	arg.Range(call, "offset", offset, r.layout.first(), r.End())
	dropped, err := r.count(offset)
	if err != nil {
		return err
	}
	if dropped > r.n || dropped == r.n && offset != r.layout.first() {
		return r.changed(dropped)
	}
	if r.n -= dropped; r.n == 0 {
		offset = 0
	}
	r.b.Truncate(offset)
	return nil
}

// Clear drops all records. It keeps the buffer's capacity.
func (r *Records) Clear() {
	r.b.truncate("buffer.Records.Clear", 0)
	r.n = 0
}
