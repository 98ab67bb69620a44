package buffer_test

import (
	"fmt"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/buffer"
)

// One iteration appends 100 million records of 16 B to an empty buffer (10 million
// with -short).
func BenchmarkAppend(b *testing.B) {
	n := 100_000_000
	if testing.Short() {
		n /= 10
	}
	for _, size := range []int{0, 16} {
		b.Run(fmt.Sprintf("recordBytes=%d", size), func(b *testing.B) {
			for b.Loop() {
				buf := buffer.New(freehold.Default(), nil)
				r := must1(buffer.NewRecords(buf, &buffer.RecordsOptions{RecordBytes: size}))
				for i := range n {
					p, err := r.Append(16)
					if err != nil {
						b.Fatal(err)
					}
					p[0] = byte(i)
				}
				must(b, buf.Close())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/record")
		})
	}
}
