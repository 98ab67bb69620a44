package alloc

import (
	"fmt"
	"testing"

	"github.com/freehold-go/freehold/lab/bench/measure"
)

// A loadOf is a load on blocks of least to most bytes, all sizes equally likely.
type loadOf func(b *testing.B, goroutines, least, most int)

// sizes is one size, or a range of them.
type sizes [2]int

func (s sizes) String() string {
	if s[0] == s[1] {
		return fmt.Sprintf("size=%d", s[0])
	}
	return fmt.Sprintf("size=%d-%d", s[0], s[1])
}

// each runs a load with each of the sizes and numbers of goroutines.
func each(b *testing.B, all []sizes, goroutines []int, f loadOf) {
	for _, g := range goroutines {
		for _, s := range all {
			measure.Run(b, fmt.Sprintf("%v/goroutines=%d", s, g), peer, func(b *testing.B) {
				several = g > 1
				f(b, g, s[0], s[1])
			})
		}
	}
}

var (
	oneSize  = []sizes{{64, 64}}
	oneOrTwo = []int{1, 2}
)

func BenchmarkPair(b *testing.B) {
	all := []sizes{{16, 16}, {64, 64}, {256, 256}, {1 << 10, 1 << 10}, {4 << 10, 4 << 10}, {64 << 10, 64 << 10}, {1 << 20, 1 << 20}}
	each(b, all, oneOrTwo, func(b *testing.B, goroutines, size, _ int) {
		measure.Loops(b, goroutines, 1, func(int) measure.Loop { return pair(size) })
	})
}

func BenchmarkZeroed(b *testing.B) {
	all := []sizes{{64, 64}, {1 << 10, 1 << 10}, {4 << 10, 4 << 10}, {64 << 10, 64 << 10}}
	each(b, all, []int{1}, func(b *testing.B, goroutines, size, _ int) {
		measure.Loops(b, goroutines, 1, func(int) measure.Loop {
			kept := &keeper{}
			return func(n int) uint64 {
				for range n {
					b := must(zeroed(size))
					kept.keep(b)
					touch(b)
					free(b)
				}
				return uint64(n * size)
			}
		})
	})
}

// slots is how many blocks are live in the loads on many blocks.
const slots = 10_000

// BenchmarkMixed frees a random one of many live blocks, and allocates another of a random size
// in its place.
func BenchmarkMixed(b *testing.B) {
	each(b, []sizes{{16, 1039}, {16, 4096}}, oneOrTwo, func(b *testing.B, goroutines, least, most int) {
		measure.Loops(b, goroutines, 1, func(i int) measure.Loop {
			random := measure.Seed(i)
			live := fillTable(slots, &random, least, most)
			return func(n int) uint64 { return replace(live, &random, least, most, n) }
		})
	})
}

// fillTable returns n live blocks.
func fillTable(n int, random *measure.Random, least, most int) []block {
	live, span := make([]block, n), uint64(most-least+1)
	for i := range live {
		live[i] = must(alloc(int(measure.From(random.Next(), uint64(least), span))))
		touch(live[i])
	}
	return live
}

// replace replaces a random block n times. It is not inlined: in a copy of its loop the compiler
// inlines nothing.
//
//go:noinline
func replace(live []block, random *measure.Random, smallest, most, n int) (sum uint64) {
	rnd, least, span := *random, uint64(smallest), uint64(most-smallest+1)
	for range n {
		x := rnd.Next()
		slot, size := measure.Below(x, uint64(len(live))), measure.From(x, least, span)
		free(live[slot])
		b := must(alloc(int(size)))
		touch(b)
		live[slot] = b
		sum += slot ^ size
	}
	*random = rnd
	return sum
}
