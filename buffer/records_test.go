// Records: frames, alignment, and what is read back.

package buffer_test

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/buffer"
)

// wantRecords checks what r holds, by each way to read it.
func wantRecords(t testing.TB, r *buffer.Records, want [][]byte) {
	t.Helper()
	if r.Len() != len(want) {
		t.Fatalf("%d records, want %d", r.Len(), len(want))
	}
	a := alloctest.New(t)
	offsets, err := r.Offsets(a)
	must(t, err)
	defer freehold.FreeSlice(a, offsets)
	i := 0
	for at, record := range r.All() {
		if i == len(want) || at != offsets[i] || !bytes.Equal(record, want[i]) || !bytes.Equal(r.At(at), want[i]) || cap(record) != len(record) {
			t.Fatalf("record %d at %d: %.40q, want %.40q at %d", i, at, record, want[min(i, len(want)-1)], offsets[i])
		}
		i++
	}
	if i != len(want) {
		t.Fatalf("All has %d records, want %d", i, len(want))
	}
}

// someRecords returns n records of size bytes, or of 0 to 40.
func someRecords(n, size int) [][]byte {
	records := make([][]byte, n)
	for i := range records {
		s := size
		if s == 0 {
			s = i * 7 % 41
		}
		records[i] = bytes.Repeat([]byte{byte(i), byte(i >> 8)}, s)[:s]
	}
	return records
}

// What is between aligned records is zeros, whatever the memory had.
func TestGapsAreZeros(t *testing.T) {
	places(t, func(t *testing.T, b *buffer.Buffer) {
		dirty := must1(b.Extend(1000))
		copy(dirty, bytes.Repeat([]byte{0xEE}, len(dirty)))
		b.Clear()
		r := must1(buffer.NewRecords(b, &buffer.RecordsOptions{Align: 64}))
		want := make([]byte, 60)
		for _, n := range []int{1, 60, 61, 0} {
			must(t, r.AppendBytes(bytes.Repeat([]byte{7}, n)))
			want = append(want, byte(n), 0, 0, 0)
			want = append(want, bytes.Repeat([]byte{7}, n)...)
			want = append(want, make([]byte, -(len(want)-60)&63)...)
		}
		wantData(t, b, want)
	})
}

func TestRecordsAreKept(t *testing.T) {
	for _, o := range []*buffer.RecordsOptions{
		nil,
		{Align: 1}, {Align: 2}, {Align: 4}, {Align: 8}, {Align: 16}, {Align: 64},
		{RecordBytes: 1}, {RecordBytes: 7}, {RecordBytes: 24, Align: 8}, {RecordBytes: 4096, Align: 64},
		{LongLengths: true}, {LongLengths: true, Align: 8}, {LongLengths: true, Align: 64},
	} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			places(t, func(t *testing.T, b *buffer.Buffer) {
				r := must1(buffer.NewRecords(b, o))
				wantRecords(t, r, nil)
				size, align := 0, 1
				if o != nil {
					size, align = o.RecordBytes, max(o.Align, 1)
				}
				records := someRecords(1000, size)
				for i, p := range records {
					if i%2 == 0 {
						must(t, r.AppendBytes(p))
						continue
					}
					to := must1(r.Append(len(p)))
					copy(to, p)
				}
				wantRecords(t, r, records)
				for at, p := range r.All() {
					if len(p) > 0 && addrOf(p)%uintptr(align) != 0 {
						t.Fatalf("the record at offset %d is at %#x", at, addrOf(p))
					}
				}
				again := must1(buffer.NewRecords(b, o))
				wantRecords(t, again, records)
				r.Clear()
				wantRecords(t, r, nil)
				must(t, r.AppendBytes(records[1]))
				wantRecords(t, r, records[1:2])
			})
		})
	}
}

// A record may be appended again, though the memory moves as the buffer grows.
func TestRecordsOfTheSameBuffer(t *testing.T) {
	places(t, func(t *testing.T, b *buffer.Buffer) {
		r := must1(buffer.NewRecords(b, nil))
		want := [][]byte{pattern(100_000)}
		must(t, r.AppendBytes(want[0]))
		for range 5 {
			b.Trim()
			must(t, r.AppendBytes(r.At(0)))
			want = append(want, want[0])
			wantRecords(t, r, want)
		}
	})
}

func TestRecordsAreTruncated(t *testing.T) {
	for _, o := range []buffer.RecordsOptions{{}, {Align: 8}, {Align: 64}, {RecordBytes: 24}} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			places(t, func(t *testing.T, b *buffer.Buffer) {
				r := must1(buffer.NewRecords(b, &o))
				records := someRecords(50, o.RecordBytes)
				var offsets []int
				must(t, r.Truncate(r.End()))
				for _, p := range records {
					offsets = append(offsets, r.End())
					must(t, r.AppendBytes(p))
					if !bytes.Equal(r.At(offsets[len(offsets)-1]), p) {
						t.Fatalf("the record is not at offset %d", offsets[len(offsets)-1])
					}
				}
				for _, n := range []int{50, 49, 20, 1, 0} {
					if n < 50 {
						must(t, r.Truncate(offsets[n]))
					} else {
						must(t, r.Truncate(r.End()))
					}
					wantRecords(t, r, records[:n])
					again := must1(buffer.NewRecords(b, &o))
					wantRecords(t, again, records[:n])
				}
				must(t, r.AppendBytes(records[3]))
				wantRecords(t, r, records[3:4])
			})
		})
	}
}

func TestRecordsBetweenOffsets(t *testing.T) {
	for _, align := range []int{1, 8} {
		r := newRecords(t, &buffer.RecordsOptions{Align: align}, someRecords(20, 0))
		var offsets []int
		for at := range r.All() {
			offsets = append(offsets, at)
		}
		if got := slices.Collect(seq1(r.Between(offsets[3], offsets[7]))); !slices.Equal(got, offsets[3:7]) {
			t.Errorf("between %d and %d: %v, want %v", offsets[3], offsets[7], got, offsets[3:7])
		}
		if got := slices.Collect(seq1(r.Between(0, offsets[2]+1))); !slices.Equal(got, offsets[:3]) {
			t.Errorf("between 0 and %d: %v, want %v", offsets[2]+1, got, offsets[:3])
		}
		for at := range r.All() {
			if at == offsets[4] {
				break
			}
		}
	}
}

// A buffer is read while records are appended: those that were there are seen, even
// if the buffer moves.
func TestAppendWhileRecordsAreRead(t *testing.T) {
	records := someRecords(100, 0)
	r := newRecords(t, nil, records)
	i := 0
	for _, p := range r.All() {
		if !bytes.Equal(p, records[i]) {
			t.Fatalf("record %d: %q, want %q", i, p, records[i])
		}
		must(t, r.AppendBytes(make([]byte, 1000)))
		i++
	}
	if i != 100 || r.Len() != 200 {
		t.Errorf("%d records of %d", i, r.Len())
	}
}

func TestRecordsInAFileThatWasClosed(t *testing.T) {
	path := saved(t, nil)
	records := someRecords(5000, 0)
	for i := 0; i < len(records); i += 1000 {
		b := must1(buffer.Open(path, nil))
		r := must1(buffer.NewRecords(b, &buffer.RecordsOptions{Align: 8}))
		wantRecords(t, r, records[:i])
		for _, p := range records[i : i+1000] {
			must(t, r.AppendBytes(p))
		}
		must(t, b.Close())
	}
}

// newRecords returns records in memory.
func newRecords(t testing.TB, o *buffer.RecordsOptions, records [][]byte) *buffer.Records {
	t.Helper()
	r := must1(buffer.NewRecords(newBuffer(t, nil), o))
	for _, p := range records {
		must(t, r.AppendBytes(p))
	}
	return r
}

func seq1[K, V any](s iter.Seq2[K, V]) iter.Seq[K] {
	return func(yield func(K) bool) {
		for k := range s {
			if !yield(k) {
				return
			}
		}
	}
}

func addrOf(p []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(p))) }
