package misuse

import (
	"bytes"
	"context"
	"io"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/buffer"
)

// inBuffer runs a program with a buffer of 100 bytes, which it closes afterwards.
func inBuffer(f func(w *world, b *buffer.Buffer)) func(w *world) {
	return func(w *world) {
		b := buffer.New(w.a, nil)
		defer b.Close()
		freehold.Must(b.Write(make([]byte, small)))
		f(w, b)
	}
}

// trimming is a writer that trims a buffer.
type trimming struct{ b *buffer.Buffer }

func (t trimming) Write(p []byte) (int, error) { t.b.Trim(); return len(p), nil }

// inRecords runs a program with records of 8 bytes.
func inRecords(f func(w *world, b *buffer.Buffer, r *buffer.Records)) func(w *world) {
	return func(w *world) {
		b := buffer.New(w.a, nil)
		defer b.Close()
		r := freehold.Must(buffer.NewRecords(b, &buffer.RecordsOptions{RecordBytes: 8}))
		for range 4 {
			freehold.Must(r.Append(8))
		}
		f(w, b, r)
	}
}

var bufferPrograms = []program{
	{"Write after Close of a Buffer", always(panics("the buffer is closed")),
		inBuffer(func(w *world, b *buffer.Buffer) { b.Close(); b.Write(nil) }),
		inBuffer(func(w *world, b *buffer.Buffer) { b.Write(nil); b.Close() })},
	{"Grow after Close of a Buffer", always(panics("the buffer is closed")),
		inBuffer(func(w *world, b *buffer.Buffer) { b.Close(); b.Grow(1) }),
		inBuffer(func(w *world, b *buffer.Buffer) { b.Grow(1); b.Close(); b.Close() })},
	{"a Buffer that New did not make", always(panics("buffer.New makes a Buffer")),
		func(w *world) { new(buffer.Buffer).Write(nil) }, inBuffer(func(w *world, b *buffer.Buffer) { b.Write(nil) })},
	{"a Buffer without a parent", always(panics("parent is nil")),
		func(w *world) { buffer.New(nil, nil) }, inBuffer(func(*world, *buffer.Buffer) {})},
	{"Trim of a Buffer in its WriteTo", always(panics("a WriteTo of the buffer is under way")),
		inBuffer(func(w *world, b *buffer.Buffer) { b.WriteTo(trimming{b}) }),
		inBuffer(func(w *world, b *buffer.Buffer) { b.WriteTo(io.Discard); b.Trim() })},
	{"more than a Buffer's bound", always(refuses),
		func(w *world) {
			b := buffer.New(w.a, &buffer.Options{MaxBytes: small})
			defer b.Close()
			_, w.err = b.Write(make([]byte, small+1))
		},
		func(w *world) {
			b := buffer.New(w.a, &buffer.Options{MaxBytes: small})
			defer b.Close()
			_, w.err = b.Write(make([]byte, small))
		}},
	{"Truncate of a Buffer to more than it has", always(panics("buffer.Buffer.Truncate")),
		inBuffer(func(w *world, b *buffer.Buffer) { b.Truncate(small + 1) }),
		inBuffer(func(w *world, b *buffer.Buffer) { b.Truncate(small) })},
	{"read of a Buffer's bytes after Close", caught{guard: guarded("use after free"), asan: sanitized},
		inBuffer(func(w *world, b *buffer.Buffer) { bytes := b.Bytes(); b.Close(); w.look(bytes) }),
		inBuffer(func(w *world, b *buffer.Buffer) { w.look(b.Bytes()) })},
	{"write to a Buffer's bytes after it has grown", late,
		inBuffer(func(w *world, b *buffer.Buffer) { bytes := b.Bytes(); freehold.Must(0, b.Grow(large)); bytes[0] = 1 }),
		inBuffer(func(w *world, b *buffer.Buffer) { freehold.Must(0, b.Grow(large)); b.Bytes()[0] = 1 })},
	{"At of an offset beyond the records", always(panics("buffer.Records.At: offset 1000")),
		inRecords(func(w *world, _ *buffer.Buffer, r *buffer.Records) { r.At(1000) }),
		inRecords(func(w *world, _ *buffer.Buffer, r *buffer.Records) { r.At(8) })},
	{"a record of another size than all", always(panics("want RecordBytes, 8")),
		inRecords(func(w *world, _ *buffer.Buffer, r *buffer.Records) { r.Append(9) }),
		inRecords(func(w *world, _ *buffer.Buffer, r *buffer.Records) { r.Append(8) })},
	{"a sort of records without an order", always(panics("is nil")),
		inRecords(func(w *world, _ *buffer.Buffer, r *buffer.Records) { r.Sort(context.Background(), nil, nil) }),
		inRecords(func(w *world, _ *buffer.Buffer, r *buffer.Records) {
			w.err = r.Sort(context.Background(), bytes.Compare, nil)
		})},
	{"a Buffer that is never closed", caught{leak: leaks("buffer.Buffer dropped without Close")}.andInTests(reports("leak of")),
		func(w *world) { freehold.Must(buffer.New(w.a, nil).Write(make([]byte, small))) },
		inBuffer(func(*world, *buffer.Buffer) {})},
}
