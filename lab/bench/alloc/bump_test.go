// Bump: blocks of one size that all end at once, after each 1 MiB.
//
// Several goroutines share one allocator, and each resets it after 1 MiB of its
// own. It allocates under a guard, as those must who do not know when others
// reset.

//go:build peer_arena || peer_shared || peer_ristretto_allocator || peer_loop

package alloc

import (
	"testing"
	"time"

	"github.com/freehold-go/freehold/lab/bench/measure"
)

func BenchmarkBump(b *testing.B) {
	each(b, oneSize, oneOrTwo, func(b *testing.B, goroutines, size, _ int) {
		measure.Loops(b, goroutines, 1, func(int) measure.Loop {
			return untilReset(size, func(n int) {
				for range n {
					touch(must(bump(size)))
				}
			})
		})
	})
}

// BenchmarkBumpNew allocates objects by the typed call, which are zero.
func BenchmarkBumpNew(b *testing.B) {
	each(b, oneSize, []int{1}, func(b *testing.B, goroutines, size, _ int) {
		measure.Loops(b, goroutines, 1, func(int) measure.Loop {
			return untilReset(size, func(n int) {
				for range n {
					o := must(bumpNew())
					if o[0] != 0 {
						panic("a new object is not zero")
					}
					o[0] = 1
				}
			})
		})
	})
}

// untilReset returns a loop that allocates blocks of one size by f, under guards, and resets
// after each bumpBytes.
func untilReset(size int, f func(n int)) measure.Loop {
	left := bumpBytes / size
	return func(n int) uint64 {
		sum := uint64(n * size)
		for n > 0 {
			batch := min(n, left)
			g := enter()
			f(batch)
			g.Leave()
			if left -= batch; left == 0 {
				reset()
				left = bumpBytes / size
			}
			n -= batch
		}
		return sum
	}
}

// BenchmarkReset times only the resets. The blocks before them are of 64 KiB, each touched.
func BenchmarkReset(b *testing.B) {
	const size = 64 << 10
	measure.Run(b, "", peer, func(b *testing.B) {
		measure.Rounds(b, 1, func() time.Duration {
			g := enter()
			for range measure.Size().Top / size {
				touch(must(bump(size)))
			}
			g.Leave()
			start := time.Now()
			reset()
			return time.Since(start)
		})
		measure.Sum(b, size)
	})
}
