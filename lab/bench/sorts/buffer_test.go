// Buffers: their growth before they are sorted.

package sorts

import (
	"fmt"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/lab/bench/measure"

	"github.com/dgraph-io/ristretto/v2/z"
)

const (
	growStep = 1 << 20
	pageStep = 4096
)

// growing is a buffer of bytes that grows to any size.
type growing struct {
	grow   func(n int) error           // makes room for n more bytes
	extend func(n int) ([]byte, error) // appends n bytes
	bytes  func() []byte
}

func growBuffer() growing {
	b := buffer.New(freehold.Default(), nil)
	must(0, b.Grow(growStep))
	return growing{b.Grow, b.Extend, b.Bytes}
}

func growZ() growing {
	b := z.NewBuffer(growStep, "bench")
	return growing{
		func(n int) error { b.Grow(n); return nil },
		func(n int) ([]byte, error) { return b.Allocate(n), nil }, b.Bytes,
	}
}

// BenchmarkBuffer appends a step at a time and writes to each page. Only making room is timed.
func BenchmarkBuffer(b *testing.B) {
	run := func(to string, top int, peer string, fresh func() growing) {
		measure.Run(b, "to="+to, peer, func(b *testing.B) {
			g, watch, spent := fresh(), startPeak(b), time.Duration(0)
			for range top / growStep {
				began := time.Now()
				must(0, g.grow(growStep))
				spent += time.Since(began)
				stamp(must(g.extend(growStep)))
			}
			data := g.bytes()
			watch.report(b, len(data))
			for i := 0; i < len(data); i += pageStep {
				if data[i] != 1 {
					b.Fatal("the buffer lost its contents")
				}
			}
			b.ReportMetric(float64(spent), "ns/op")
			measure.Sum(b, uint64(len(data)))
		})
	}
	s := measure.Size()
	run("usual", s.Top, "freehold-records", growBuffer)
	run("usual", s.Top, "ristretto-buffer", growZ)
	// z.Buffer copies, and would take three times as much memory.
	run("full", s.FullBuffer, "freehold-records", growBuffer)
}

// stamp writes to each page.
func stamp(data []byte) {
	for i := 0; i < len(data); i += pageStep {
		data[i] = 1
	}
}

// BenchmarkAppend appends records of 16 bytes to an empty buffer, and writes to each.
func BenchmarkAppend(b *testing.B) {
	const size = 16
	run := func(kind, peer string, appendTo func(n int)) {
		measure.Run(b, fmt.Sprintf("records=%s", kind), peer, func(b *testing.B) {
			n := 10 * measure.Size().Records
			measure.Once(b, n, func() { appendTo(n) })
			measure.Sum(b, uint64(n))
		})
	}
	records := func(fixed int) func(n int) {
		return func(n int) {
			r := must(buffer.NewRecords(buffer.New(freehold.Default(), nil), &buffer.RecordsOptions{RecordBytes: fixed}))
			for i := range n {
				must(r.Append(size))[0] = byte(i)
			}
		}
	}
	run("16", "freehold-records", records(0))
	run("16", "ristretto-buffer", func(n int) {
		b := z.NewBuffer(growStep, "bench")
		for i := range n {
			b.SliceAllocate(size)[0] = byte(i)
		}
	})
	run("16-fixed", "freehold-records", records(size))
}
