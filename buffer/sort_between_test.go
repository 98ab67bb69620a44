// Sorts of a part of the records.

package buffer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/freehold-go/freehold/buffer"
)

// What is between two offsets is sorted, and the rest stays as it is.
func TestSortBetween(t *testing.T) {
	for _, o := range []buffer.RecordsOptions{{}, {Align: 64}, {RecordBytes: 24}, {RecordBytes: 9}} {
		const n = 3000
		records := fill(rand.New(rand.NewPCG(1, 2)), inputs[0].key, n, o.RecordBytes)
		for _, by := range kinds(o.RecordBytes) {
			for _, tt := range []struct{ from, to, more, parallel int }{
				{0, n, 0, 1}, {0, n, 0, 4}, {0, 1000, 0, 4}, {2000, n, 0, 1},
				{100, 2900, 0, 4}, {100, 2900, 1, 4}, // to within a record
				{7, 7, 0, 4}, {7, 8, 0, 4}, {7, 9, 0, 4}, {7, 8, 1, 1}, {n, n, 0, 4}, {0, 1, 0, 4},
			} {
				t.Run(fmt.Sprintf("%+v/%s/%+v", o, by.name, tt), func(t *testing.T) {
					r := newRecords(t, &o, nil)
					var offsets []int
					for _, p := range records {
						offsets = append(offsets, r.End())
						must(t, r.AppendBytes(p))
					}
					offsets = append(offsets, r.End())
					from, to := offsets[tt.from], offsets[tt.to]+tt.more
					must(t, by.sort(r, &buffer.SortOptions{Parallel: tt.parallel, From: from, To: to}))
					want := slices.Clone(records)
					slices.SortStableFunc(want[tt.from:tt.to+tt.more], by.cmp)
					wantRecords(t, r, want)
				})
			}
		}
	}
}

func TestSortBetweenOfChangedLengths(t *testing.T) {
	b := newBuffer(t, nil)
	r := must1(buffer.NewRecords(b, nil))
	for range 5 {
		must(t, r.AppendBytes([]byte("my record")))
	}
	b.Bytes()[26] = 100
	data := bytes.Clone(b.Bytes())
	o := &buffer.SortOptions{From: 13, To: 39}
	if err := r.SortBy(context.Background(), nil, o); !errors.Is(err, buffer.ErrCorrupt) {
		t.Error(err)
	}
	wantData(t, b, data)
	o.To = 26 // before it
	must(t, r.SortBy(context.Background(), nil, o))
	wantData(t, b, data)
}
