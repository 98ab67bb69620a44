// Records: buffers that are no records', limits, and misuse.

package buffer_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/internal/panics"
)

// A length that changed is an error, and nothing is dropped.
func TestTruncateOfChangedLengths(t *testing.T) {
	b := newBuffer(t, nil)
	r := must1(buffer.NewRecords(b, nil))
	for range 5 {
		must(t, r.AppendBytes([]byte("my record")))
	}
	for _, tt := range []struct {
		at, value, offset int
	}{
		{13, 200, 13},     // beyond the data
		{13 + 4, 'x', 17}, // where no record begins
	} {
		was := b.Bytes()[tt.at]
		b.Bytes()[tt.at] = byte(tt.value)
		if err := r.Truncate(tt.offset); !errors.Is(err, buffer.ErrCorrupt) || r.Len() != 5 || b.Len() != 65 {
			t.Errorf("%+v: %v, %d records in %d bytes", tt, err, r.Len(), b.Len())
		}
		b.Bytes()[tt.at] = was
	}
}

// So it is if all of it reads as records, but as others.
func TestTruncateOfOtherRecords(t *testing.T) {
	for _, tt := range []struct{ records, size, changed, offset int }{
		{1, 40, 0, 0}, // more than there were
		{2, 4, 8, 8},  // as many from the second on as there were in all
	} {
		b := newBuffer(t, nil)
		r := must1(buffer.NewRecords(b, nil))
		for range tt.records {
			must(t, r.AppendBytes(make([]byte, tt.size)))
		}
		b.Bytes()[tt.changed] = 0
		n := b.Len()
		if err := r.Truncate(tt.offset); !errors.Is(err, buffer.ErrCorrupt) || r.Len() != tt.records || b.Len() != n {
			t.Errorf("%+v: %v, %d records in %d bytes", tt, err, r.Len(), b.Len())
		}
	}
}

func TestBytesThatAreNoRecords(t *testing.T) {
	frame := func(n uint32, p string) string {
		return string(binary.LittleEndian.AppendUint32(nil, n)) + p
	}
	most := fmt.Sprintf("%d is the most", uint64(min(math.MaxUint32, math.MaxInt-4096)))
	for _, tt := range []struct {
		data string
		o    buffer.RecordsOptions
		want string
	}{
		{"abc", buffer.RecordsOptions{}, "no record begins at offset 0, or it is corrupt: its length has 3 of 4 bytes"},
		{frame(2, "ab") + "abc", buffer.RecordsOptions{}, "no record begins at offset 6, or it is corrupt: its length has 3 of 4 bytes"},
		{frame(3, "ab"), buffer.RecordsOptions{}, "no record begins at offset 0, or it is corrupt: its length is 3, and 2 bytes are left"},
		{frame(2, "ab") + frame(1<<32-1, "abc"), buffer.RecordsOptions{}, "no record begins at offset 6, or it is corrupt: its length is 4294967295, and 3 bytes are left"},
		{frame(1<<31, ""), buffer.RecordsOptions{}, "no record begins at offset 0, or it is corrupt: its length is 2147483648, and 0 bytes are left"},
		{"abc", buffer.RecordsOptions{Align: 8}, "no record begins at offset 3, or it is corrupt: its length has 0 of 4 bytes"},
		{"\x00\x00\x00\x00" + frame(2, "ab"), buffer.RecordsOptions{Align: 8}, "no record begins at offset 4, or it is corrupt: its length is 2, and 2 bytes are left"},
		{"abcdefg", buffer.RecordsOptions{LongLengths: true}, "no record begins at offset 0, or it is corrupt: its length has 7 of 8 bytes"},
		{"\x00\x00\x00\x00\x00\x00\x00\x03ab", buffer.RecordsOptions{LongLengths: true}, "no record begins at offset 0, or it is corrupt: its length is 3, and 2 bytes are left"},
		{"\xff\xff\xff\xff\xff\xff\xff\xffab", buffer.RecordsOptions{LongLengths: true}, "no record begins at offset 0, or it is corrupt: its length is 18446744073709551615, and " + most},
		{"abcdefgh", buffer.RecordsOptions{RecordBytes: 3}, "no record begins at offset 6, or it is corrupt: it has 2 of 3 bytes"},
	} {
		b := newBuffer(t, nil)
		b.WriteString(tt.data)
		_, err := buffer.NewRecords(b, &tt.o)
		if !errors.Is(err, buffer.ErrCorrupt) || err.Error() != "freehold: buffer: "+tt.want {
			t.Errorf("%q: %v, want %v", tt.data, err, tt.want)
		}
		wantData(t, b, []byte(tt.data))
	}
}

func TestRecordThatIsTooLong(t *testing.T) {
	if ^uint(0)>>32 == 0 {
		t.Skip("an int has 32 bits")
	}
	r := newRecords(t, nil, nil)
	beyond := uint64(1 << 32)
	for _, n := range []int{int(beyond), math.MaxInt} {
		if _, err := r.Append(n); err == nil || !strings.Contains(err.Error(), "4294967295 is the most") {
			t.Errorf("a record of %d bytes: %v", n, err)
		}
	}
	wantRecords(t, r, nil)
}

// A record that finds no room leaves the others as they were.
func TestEveryRefusalLeavesTheRecords(t *testing.T) {
	for n := 1; n < 12; n++ {
		b := buffer.New(alloctest.FailAfter(alloctest.New(t), n), nil)
		r := must1(buffer.NewRecords(b, &buffer.RecordsOptions{Align: 16}))
		var want [][]byte
		for _, p := range someRecords(300, 0) {
			if err := r.AppendBytes(p); err == nil {
				want = append(want, p)
			} else if !errors.Is(err, freehold.ErrOutOfMemory) {
				t.Fatal(err)
			}
		}
		wantRecords(t, r, want)
		must(t, b.Close())
	}
}

func TestRecordsInAFileThatIsTruncated(t *testing.T) {
	path := saved(t, nil)
	b := must1(buffer.Open(path, nil))
	defer b.Close()
	r := must1(buffer.NewRecords(b, nil))
	for range 100 {
		must(t, r.AppendBytes(make([]byte, 1000)))
	}
	must(t, b.Commit())
	if err := os.Truncate(path, 50_000); err != nil {
		t.Skip(err) // as on Windows, where the file is mapped
	}
	if _, err := buffer.NewRecords(b, nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("NewRecords: %v", err)
	}
	if _, err := r.Offsets(alloctest.New(t)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Offsets: %v", err)
	}
	n, end := r.Len(), b.Len()
	for range 100 { // the free part of the mapping, then growth
		if err := r.AppendBytes(make([]byte, 10_000)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("AppendBytes: %v", err)
		}
	}
	if r.Len() != n || b.Len() != end {
		t.Errorf("%d records in %d bytes, want %d in %d", r.Len(), b.Len(), n, end)
	}
}

// The length of a record may find a page of the file, and its bytes none.
func TestRecordsAcrossTheEndOfAFileThatIsTruncated(t *testing.T) {
	path := saved(t, nil)
	b := must1(buffer.Open(path, nil))
	defer b.Close()
	r := must1(buffer.NewRecords(b, nil))
	must(t, r.AppendBytes([]byte("data")))
	must(t, b.Grow(200_000))
	if err := os.Truncate(path, headerBytes+100); err != nil {
		t.Skip(err)
	}
	if err := r.AppendBytes(make([]byte, 150_000)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("AppendBytes: %v", err)
	}
	wantRecords(t, r, [][]byte{[]byte("data")})
}

func TestOffsetsWithoutMemory(t *testing.T) {
	r := newRecords(t, nil, someRecords(10, 0))
	if _, err := r.Offsets(alloctest.FailAfter(alloctest.New(t), 0)); !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Error(err)
	}
}

func TestMisuseOfRecordsPanics(t *testing.T) {
	b := newBuffer(t, nil)
	r := must1(buffer.NewRecords(b, nil))
	must(t, r.AppendBytes([]byte("data")))
	fixed := newRecords(t, &buffer.RecordsOptions{RecordBytes: 8}, nil)
	closed := buffer.New(alloctest.New(t), nil)
	over := must1(buffer.NewRecords(closed, nil))
	must(t, over.AppendBytes([]byte("data")))
	must(t, closed.Close())
	records := func(o buffer.RecordsOptions) func() {
		return func() { buffer.NewRecords(b, &o) }
	}
	for _, tt := range []struct {
		want string
		call func()
	}{
		{"freehold: buffer.NewRecords: buffer is nil", func() { buffer.NewRecords(nil, nil) }},
		{"freehold: buffer.NewRecords: the buffer is closed", func() { buffer.NewRecords(closed, nil) }},
		{"freehold: buffer.NewRecords: RecordBytes -1, want 0 or more", records(buffer.RecordsOptions{RecordBytes: -1})},
		{"freehold: buffer.NewRecords: alignment 3, want a power of two", records(buffer.RecordsOptions{Align: 3})},
		{"freehold: buffer.NewRecords: alignment -1, want a power of two", records(buffer.RecordsOptions{Align: -1})},
		{"freehold: buffer.NewRecords: alignment 128, want 1 to 64", records(buffer.RecordsOptions{Align: 128})},
		{"freehold: buffer.NewRecords: RecordBytes 12, want a multiple of the alignment 8", records(buffer.RecordsOptions{RecordBytes: 12, Align: 8})},
		{"freehold: buffer.NewRecords: LongLengths with RecordBytes 12: ...", records(buffer.RecordsOptions{RecordBytes: 12, LongLengths: true})},
		{"freehold: buffer.Records.Append: size -1, want 0 or more", func() { r.Append(-1) }},
		{"freehold: buffer.Records.Append: size 7, want RecordBytes, 8", func() { fixed.Append(7) }},
		{"freehold: buffer.Records.AppendBytes: size 9, want RecordBytes, 8", func() { fixed.AppendBytes(make([]byte, 9)) }},
		{"freehold: buffer.Records.At: offset -1, want 0 to 7", func() { r.At(-1) }},
		{"freehold: buffer.Records.At: offset 8, want 0 to 7", func() { r.At(8) }},
		{"freehold: buffer.Records.At: offset 3, where no record begins", func() { r.At(3) }},
		{"freehold: buffer.Records.Truncate: offset 9, want 0 to 8", func() { r.Truncate(9) }},
		{"freehold: buffer.Records.Between: to 9, want 0 to 8", func() { r.Between(0, 9) }},
		{"freehold: buffer.Records.Between: from 5, want 0 to 4", func() { r.Between(5, 4) }},
		{"freehold: buffer.Records.Offsets: allocator is nil", func() { r.Offsets(nil) }},
		{"freehold: buffer.Records.Offsets: the buffer is closed", func() { over.Offsets(freehold.Default()) }},
		{"freehold: buffer.Records.At: the buffer is closed", func() { over.At(0) }},
		{"freehold: buffer.Records.Truncate: the buffer is closed", func() { over.Truncate(0) }},
		{"freehold: buffer.Records.Clear: the buffer is closed", func() { over.Clear() }},
		{"freehold: buffer.Records.Append: the buffer is closed", func() { over.Append(1) }},
		{"freehold: buffer.Records.AppendBytes: the buffer is closed", func() { over.AppendBytes(nil) }},
		{"freehold: buffer.Records.SortBy: the buffer is closed", func() { over.SortBy(context.Background(), nil, nil) }},
	} {
		panics.Want(t, tt.want, tt.call)
	}
	wantRecords(t, r, [][]byte{[]byte("data")})
}

// Bytes that no Records wrote are no record: the loop says where.
func TestAllOfABufferThatWasWrittenBesideItsRecords(t *testing.T) {
	b := newBuffer(t, nil)
	r := must1(buffer.NewRecords(b, nil))
	must(t, r.AppendBytes([]byte("data")))
	must1(b.Write([]byte("x")))
	must(t, r.AppendBytes([]byte("more")))
	panics.Want(t, "freehold: buffer.Records.Between: offset 8, where no record begins: was the buffer written to beside its Records?", func() {
		for range r.All() {
		}
	})
}

// Reports work after Close of the buffer: there are no records.
func TestRecordsAfterClose(t *testing.T) {
	for _, o := range []buffer.RecordsOptions{{}, {Align: 64}, {RecordBytes: 4}} {
		b := buffer.New(alloctest.New(t), nil)
		r := must1(buffer.NewRecords(b, &o))
		empty := r.End()
		for range 3 {
			must(t, r.AppendBytes([]byte("data")))
		}
		must(t, b.Close())
		if r.Len() != 0 || r.End() != empty {
			t.Errorf("%+v: %d records to offset %d", o, r.Len(), r.End())
		}
		for at := range r.All() {
			t.Errorf("%+v: a record at offset %d", o, at)
		}
		for at := range r.Between(0, empty) {
			t.Errorf("%+v: a record at offset %d", o, at)
		}
	}
}
