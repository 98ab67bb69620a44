package buffer_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/freehold-go/freehold/buffer"
)

// FuzzSort reads its input as a layout, a sorting, a number of goroutines, how often
// each record is there, and records: each a length and its bytes, or bytes alone if
// the layout has a size. The sorted records must be those of a stable sort.
func FuzzSort(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 3, 'a', 'b', 'c', 0, 1, 'a', 2, 'a', 0})
	f.Add([]byte{5, 2, 3, 255, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 7})
	f.Add(append([]byte{9, 1, 2, 200}, pattern(960)...))
	f.Add(append([]byte{6, 4, 4, 100}, pattern(900)...))
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) < 4 {
			return
		}
		o := layouts[int(in[0])%len(layouts)]
		all := sortings(o.RecordBytes)
		by := all[int(in[1])%len(all)]
		so := &buffer.SortOptions{Parallel: 1 + int(in[2])%8}
		times := 1 + int(in[3])
		var records [][]byte
		size := 0
		for in = in[4:]; len(in) > 0; {
			n := o.RecordBytes
			if n == 0 {
				n = int(in[0]) % 64
				in = in[1:]
			}
			p := make([]byte, n)
			if o.RecordBytes == 0 {
				p = p[:min(n, len(in))]
			}
			in = in[copy(p, in):]
			records = append(records, p)
			size += len(p)
		}
		if size*times < 1<<17 {
			records = slices.Repeat(records, times)
		}
		for i, p := range records {
			if len(p) > 4 {
				records[i] = append(bytes.Clone(p[:len(p)-4]), byte(i>>24), byte(i>>16), byte(i>>8), byte(i))
			}
		}
		wantSorted(t, newBuffer(t, nil), &o, records, by, so)
	})
}
