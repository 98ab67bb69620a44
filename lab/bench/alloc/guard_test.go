// Guard: a reader's stay, entered and left.

//go:build peer_shared || peer_pool

package alloc

import (
	"fmt"
	"testing"

	"github.com/freehold-go/freehold/lab/bench/measure"
)

func BenchmarkGuard(b *testing.B) {
	for _, goroutines := range oneOrTwo {
		measure.Run(b, fmt.Sprintf("goroutines=%d", goroutines), peer, func(b *testing.B) {
			measure.Loops(b, goroutines, 1, func(int) measure.Loop {
				return func(n int) uint64 {
					for range n {
						g := enter()
						g.Leave()
					}
					return uint64(n)
				}
			})
		})
	}
}
