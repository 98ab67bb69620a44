// The interfaces of package io.

package buffer_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

var _ interface {
	io.Writer
	io.StringWriter
	io.ByteWriter
	io.ReaderFrom
	io.WriterTo
	io.ReaderAt
	io.Closer
} = (*buffer.Buffer)(nil)

var _ interface {
	io.Reader
	io.ByteReader
	io.Seeker
	io.WriterTo
} = (*buffer.Reader)(nil)

// places calls f with a buffer in memory and with one in a file.
func places(t *testing.T, f func(t *testing.T, b *buffer.Buffer)) {
	t.Run("memory", func(t *testing.T) { f(t, newBuffer(t, nil)) })
	t.Run("file", func(t *testing.T) {
		mapsFiles(t)
		f(t, newBuffer(t, &buffer.Options{SpillAfter: 1, Dir: filetest.TempDir(t)}))
	})
}

func TestReader(t *testing.T) {
	places(t, func(t *testing.T, b *buffer.Buffer) {
		must(t, iotest.TestReader(b.NewReader(), nil))
		data := pattern(10_000)
		b.Write(data)
		must(t, iotest.TestReader(b.NewReader(), data))
		must(t, iotest.TestReader(io.NewSectionReader(b, 0, int64(b.Len())), data))
	})
}

func TestReaderSeesWhatIsAppended(t *testing.T) {
	places(t, func(t *testing.T, b *buffer.Buffer) {
		r := b.NewReader()
		for i := range 1000 {
			if _, err := r.ReadByte(); err != io.EOF {
				t.Fatalf("at the end: %v", err)
			}
			must(t, b.WriteByte(byte(i)))
			if c, err := r.ReadByte(); err != nil || c != byte(i) {
				t.Fatalf("byte %d is %d, %v", i, c, err)
			}
		}
		if at, err := r.Seek(-10, io.SeekEnd); err != nil || at != 990 {
			t.Errorf("Seek: %d, %v", at, err)
		}
		var w bytes.Buffer
		if n, err := r.WriteTo(&w); err != nil || n != 10 || !bytes.Equal(w.Bytes(), b.Bytes()[990:]) {
			t.Errorf("WriteTo: %d, %v", n, err)
		}
		if n, err := r.WriteTo(&w); err != nil || n != 0 {
			t.Errorf("WriteTo at the end: %d, %v", n, err)
		}
		for _, seek := range []struct {
			offset int64
			whence int
		}{{-1, io.SeekStart}, {-1001, io.SeekCurrent}, {0, 3}} {
			if _, err := r.Seek(seek.offset, seek.whence); err == nil {
				t.Errorf("Seek%v succeeded", seek)
			}
		}
		must1(r.Seek(2000, io.SeekStart))
		if _, err := r.ReadByte(); err != io.EOF {
			t.Errorf("beyond the end: %v", err)
		}
		if n, err := r.WriteTo(&w); err != nil || n != 0 {
			t.Errorf("WriteTo beyond the end: %d, %v", n, err)
		}
		if _, err := b.ReadAt(nil, -1); err == nil {
			t.Error("ReadAt of a negative offset succeeded")
		}
	})
}

func must1[T any](v T, err error) T { return freehold.Must(v, err) }

// What is written may be a part of the buffer, whose memory moves as it grows.
func TestWriteOfABufferToItself(t *testing.T) {
	places(t, func(t *testing.T, b *buffer.Buffer) {
		want := pattern(1 << 20)
		b.Write(want)
		for name, write := range map[string]func(p []byte) (int64, error){
			"io.Copy": func([]byte) (int64, error) { return io.Copy(b, b.NewReader()) },
			"WriteTo": func([]byte) (int64, error) { return b.WriteTo(b) },
			"Write":   func(p []byte) (int64, error) { n, err := b.Write(p); return int64(n), err },
			"WriteString": func(p []byte) (int64, error) {
				n, err := b.WriteString(unsafe.String(&p[0], len(p)))
				return int64(n), err
			},
		} {
			b.Trim()
			if n, err := write(b.Bytes()); err != nil || n != int64(len(want)) {
				t.Fatalf("%s: %d bytes of %d, %v", name, n, len(want), err)
			}
			want = append(want, want...)
			wantData(t, b, want)
		}
	})
}

// Spilling moves the data too.
func TestWriteOfABufferToItselfThatSpills(t *testing.T) {
	mapsFiles(t)
	b := newBuffer(t, &buffer.Options{SpillAfter: 1 << 20, Dir: filetest.TempDir(t)})
	data := pattern(1 << 20)
	b.Write(data)
	if n, err := b.Write(b.Bytes()[5:]); err != nil || n != len(data)-5 || !b.InFile() {
		t.Fatalf("%d bytes, in a file: %t, %v", n, b.InFile(), err)
	}
	wantData(t, b, append(data, data[5:]...))
}

func TestReadFrom(t *testing.T) {
	places(t, func(t *testing.T, b *buffer.Buffer) {
		data := pattern(100_000)
		for name, r := range map[string]io.Reader{
			"all at once":          bytes.NewReader(data),
			"byte by byte":         iotest.OneByteReader(bytes.NewReader(data)),
			"with an EOF and data": iotest.DataErrReader(bytes.NewReader(data)),
		} {
			b.Clear()
			b.WriteString("before ")
			if n, err := b.ReadFrom(r); err != nil || n != int64(len(data)) {
				t.Errorf("%s: %d bytes, %v", name, n, err)
			}
			wantData(t, b, append([]byte("before "), data...))
		}
		b.Clear()
		broken := errors.New("broken")
		r := io.MultiReader(bytes.NewReader(data[:777]), iotest.ErrReader(broken))
		for _, r := range []io.Reader{r, iotest.DataErrReader(io.MultiReader(bytes.NewReader(data[777:1000]), r))} {
			before := b.Len()
			n, err := b.ReadFrom(r)
			if int(n) != b.Len()-before || err != broken {
				t.Errorf("%d bytes of %d, %v", n, b.Len()-before, err)
			}
		}
		wantData(t, b, data[:1000])
		for _, r := range []io.Reader{liar(-1), liar(1)} {
			if _, err := b.ReadFrom(r); err == nil {
				t.Errorf("a reader that returns %d bytes more than there are was believed", r)
			}
		}
		wantData(t, b, data[:1000])
	})
}

// Only data that does not fit is refused, or makes the buffer spill.
func TestReadFromUpToALimit(t *testing.T) {
	read := func(b *buffer.Buffer, n int) error {
		data := pattern(n)
		for _, r := range []io.Reader{
			bytes.NewReader(data),
			iotest.OneByteReader(bytes.NewReader(data)),
			iotest.DataErrReader(bytes.NewReader(data)),
		} {
			b.Clear()
			b.Trim()
			got, err := b.ReadFrom(r)
			if int(got) != b.Len() {
				t.Errorf("ReadFrom of %d bytes returned %d, and the buffer has %d", n, got, b.Len())
			}
			wantData(t, b, data[:b.Len()])
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, n := range []int{0, 1, 100, 511, 512, 513, 600, 900, 999, 1000, 1001, 1600} {
		fits := n <= 1000
		limited := newBuffer(t, &buffer.Options{MaxBytes: 1000})
		if err := read(limited, n); (err == nil) != fits || !fits && (limited.Len() != 1000 || !errors.Is(err, freehold.ErrOutOfMemory)) {
			t.Errorf("MaxBytes: %d bytes of %d, %v", limited.Len(), n, err)
		}
	}
	b := buffer.New(alloctest.FailAfter(alloctest.New(t), 1), nil)
	must(t, b.Grow(100))
	if n, err := b.ReadFrom(bytes.NewReader(pattern(b.Cap()))); err != nil || int(n) != b.Cap() {
		t.Errorf("%d bytes for a capacity of %d that cannot grow: %v", n, b.Cap(), err)
	}
	if n, err := b.ReadFrom(bytes.NewReader(pattern(1))); n != 0 || !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Errorf("%d bytes beyond the capacity, %v", n, err)
	}
	must(t, b.Close())
}

func TestReadFromSpillsForDataAlone(t *testing.T) {
	mapsFiles(t)
	dir := filetest.TempDir(t)
	for _, n := range []int{0, 1, 600, 1000, 1001, 5000} {
		b := newBuffer(t, &buffer.Options{SpillAfter: 1000, Dir: dir})
		got, err := b.ReadFrom(bytes.NewReader(pattern(n)))
		if err != nil || int(got) != n || b.InFile() != (n > 1000) {
			t.Errorf("%d bytes of %d, in a file: %t, %v", got, n, b.InFile(), err)
		}
		wantData(t, b, pattern(n))
	}
	// The byte that is read to know if there is more may come with an error.
	b, broken := newBuffer(t, &buffer.Options{SpillAfter: 1000, Dir: dir}), errors.New("broken")
	b.Write(pattern(1000))
	r := iotest.DataErrReader(io.MultiReader(bytes.NewReader([]byte{1}), iotest.ErrReader(broken)))
	if n, err := b.ReadFrom(r); n != 1 || err != broken {
		t.Errorf("%d bytes, %v", n, err)
	}
	wantData(t, b, append(pattern(1000), 1))
}

// liar is a reader that returns -1, or more than it was asked for by so many bytes.
type liar int

func (l liar) Read(p []byte) (int, error) {
	if l < 0 {
		return -1, nil
	}
	return len(p) + int(l), io.EOF // or it would be believed for ever
}

// A writer behind the buffer would read the memory that it has left.
func TestWriteToAWriterThatChangesTheCapacity(t *testing.T) {
	places(t, func(t *testing.T, b *buffer.Buffer) {
		b.Write(pattern(1000))
		must(t, b.Grow(5000))
		var w bytes.Buffer
		for name, f := range map[string]func(){
			"buffer.Buffer.Write": func() { io.Copy(io.MultiWriter(b, &w), b.NewReader()) },
			"buffer.Buffer.Trim":  func() { b.WriteTo(writer(b.Trim)) },
			"buffer.Buffer.Close": func() { b.WriteTo(writer(func() { b.Close() })) },
		} {
			func() {
				defer func() {
					if p := recover(); p != "freehold: "+name+": a WriteTo of the buffer is under way" {
						t.Errorf("%s: panic %v", name, p)
					}
				}()
				for b.Cap() > 0 { // appending within the capacity is allowed
					f()
				}
			}()
		}
		if b.Len() != 4000 || w.Len() != 3000 {
			t.Errorf("%d bytes, %d written", b.Len(), w.Len())
		}
		must(t, b.WriteByte(1))
		b.Trim()
	})
}

type writer func()

func (f writer) Write(p []byte) (int, error) { f(); return len(p), nil }

func TestWriteToAWriterThatFails(t *testing.T) {
	places(t, func(t *testing.T, b *buffer.Buffer) {
		fmt.Fprintf(b, "%d bytes and %s", 5, "more")
		if n, err := b.WriteTo(short{}); err != io.ErrShortWrite || n != 3 {
			t.Errorf("%d bytes, %v", n, err)
		}
		wantData(t, b, []byte("5 bytes and more"))
	})
}

type short struct{}

func (short) Write([]byte) (int, error) { return 3, nil }
