package vector_test

import (
	"fmt"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/vector"
)

// BenchmarkAppend appends n numbers, one at a time, to an empty vector.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{100, 1e4, 1e6, 1e8} {
		per := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/element")
		}
		b.Run(fmt.Sprintf("n=%d/Vector", n), func(b *testing.B) {
			for b.Loop() {
				v := vector.New[uint64](freehold.Default(), nil)
				for i := range uint64(n) {
					if v.Append(i) != nil {
						b.Fatal("out of memory")
					}
				}
				v.Close()
			}
			per(b)
		})
		b.Run(fmt.Sprintf("n=%d/Chunked", n), func(b *testing.B) {
			for b.Loop() {
				c := vector.NewChunked[uint64](freehold.Default(), nil)
				for i := range uint64(n) {
					if _, err := c.Append(i); err != nil {
						b.Fatal(err)
					}
				}
				c.Close()
			}
			per(b)
		})
		b.Run(fmt.Sprintf("n=%d/append", n), func(b *testing.B) {
			for b.Loop() {
				var s []uint64
				for i := range uint64(n) {
					s = append(s, i)
				}
				sink += int(s[n/2])
			}
			per(b)
		})
	}
}

var sink int

// BenchmarkAt reads elements in a random order that the cache holds.
func BenchmarkAt(b *testing.B) {
	const n = 1 << 15
	v, c, s := vector.New[uint64](freehold.Default(), nil), vector.NewChunked[uint64](freehold.Default(), nil), []uint64{}
	defer v.Close()
	defer c.Close()
	for i := range uint64(n) {
		v.Append(i * 7919)
		c.Append(i * 7919)
		s = append(s, i*7919)
	}
	b.Run("Vector", func(b *testing.B) {
		i := uint64(0)
		for b.Loop() {
			i += v.At(int(i % n))
		}
	})
	b.Run("Chunked", func(b *testing.B) {
		i := uint64(0)
		for b.Loop() {
			i += *c.At(int(i % n))
		}
	})
	b.Run("slice", func(b *testing.B) {
		i := uint64(0)
		for b.Loop() {
			i += s[i%n]
		}
	})
}

// BenchmarkAll sums a million elements.
func BenchmarkAll(b *testing.B) {
	const n = 1e6
	v, c := vector.New[uint64](freehold.Default(), nil), vector.NewChunked[uint64](freehold.Default(), nil)
	defer v.Close()
	defer c.Close()
	for i := range uint64(n) {
		v.Append(i)
		c.Append(i)
	}
	b.Run("Vector", func(b *testing.B) {
		for b.Loop() {
			for _, e := range v.All() {
				sink += int(e)
			}
		}
	})
	b.Run("Slice", func(b *testing.B) {
		for b.Loop() {
			for _, e := range v.Slice() {
				sink += int(e)
			}
		}
	})
	b.Run("Chunked", func(b *testing.B) {
		for b.Loop() {
			for _, e := range c.All() {
				sink += int(*e)
			}
		}
	})
}
