package buffer_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/extsort"
)

// What one package writes the other reads.
func TestRecordsAreThoseOfExtsort(t *testing.T) {
	for _, o := range []buffer.RecordsOptions{{}, {RecordBytes: 24}} {
		records := someRecords(1000, o.RecordBytes)
		in, out := newRecordsIn(t, newBuffer(t, nil), &o, records), newBuffer(t, nil)
		format := extsort.LengthPrefixed()
		if o.RecordBytes != 0 {
			format = extsort.Fixed(o.RecordBytes)
		}
		must(t, extsort.Sort(context.Background(), out, &extsort.Options{Format: format, MemoryBytes: 1 << 20}, in.NewReader()))
		r := must1(buffer.NewRecords(out, &o))
		want := slices.Clone(records)
		slices.SortStableFunc(want, bytes.Compare)
		wantRecords(t, r, want)
	}
}

func newRecordsIn(t testing.TB, b *buffer.Buffer, o *buffer.RecordsOptions, records [][]byte) *buffer.Buffer {
	t.Helper()
	r := must1(buffer.NewRecords(b, o))
	for _, p := range records {
		must(t, r.AppendBytes(p))
	}
	return b
}
