// Peak: the most memory that a program takes whose live bytes rise and fall.
//
// Each phase has other sizes, so that free blocks of the last one are of no use to it. The table of
// blocks is there and touched before, and the loops make no garbage.

package alloc

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/freehold-go/freehold/lab/bench/measure"
	"github.com/freehold-go/freehold/lab/process"
)

const peakPhases = 12

func BenchmarkPeak(b *testing.B) {
	for _, mib := range []int{8, 32} {
		measure.Run(b, fmt.Sprintf("live=%dMiB/goroutines=2", mib), peer, func(b *testing.B) {
			all := []*tide{newTide(0, mib<<19), newTide(1, mib<<19)}
			free(must(alloc(16))) // the allocator's own start-up is not a block's cost
			runtime.GC()
			before, err := process.ResetPeak()
			if err != nil {
				b.Skip(err)
			}
			most, ops := 0, 0
			together := func(f func(*tide)) {
				var done sync.WaitGroup
				for _, t := range all {
					done.Go(func() { f(t) })
				}
				done.Wait()
				most = max(most, all[0].live+all[1].live)
			}
			measure.Once(b, peakPhases, func() {
				for range peakPhases {
					together((*tide).rise)
					together((*tide).fall)
				}
			})
			peak, err := process.Peak()
			if err != nil {
				b.Skip(err)
			}
			for _, t := range all {
				ops += t.ops
				t.phase, t.high = 0, 0
				t.fall()
			}
			b.ReportMetric(float64(peak-before)/float64(most), "peak/live")
			measure.Sum(b, uint64(most+ops))
		})
	}
}

// A tide is the blocks of a goroutine.
type tide struct {
	blocks     []block
	sizes      []uint32
	live, high int // bytes; those at the end of a rise
	phase, ops int
	random     measure.Random
}

func newTide(goroutine, high int) *tide {
	t := &tide{make([]block, high/128), make([]uint32, high/128), 0, high, 0, 0, measure.Seed(goroutine)}
	clear(t.blocks) // touches it
	clear(t.sizes)
	t.blocks, t.sizes = t.blocks[:0], t.sizes[:0]
	return t
}

// size returns mostly a small size, and a large one for one of 500 blocks.
func (t *tide) size() int {
	kind, x := measure.Below(t.random.Next(), 1000), t.random.Next()
	switch {
	case kind < 900:
		return int(measure.From(x, uint64(16+24*t.phase), 480))
	case kind < 998:
		return int(measure.From(x, 512, 8<<10))
	}
	return int(measure.From(x, 40<<10, 600<<10))
}

// rise allocates up to high, and then replaces each block three times in the mean.
func (t *tide) rise() {
	for t.live < t.high {
		t.add()
	}
	for range 3 * len(t.blocks) {
		t.drop()
		for t.live < t.high {
			t.add()
		}
	}
}

// fall frees two thirds, and begins the next phase.
func (t *tide) fall() {
	for len(t.blocks) > 0 && t.live > t.high/3 {
		t.drop()
	}
	t.phase++
}

func (t *tide) add() {
	size := t.size()
	b := must(alloc(size))
	fill(bytes(b, size))
	t.blocks, t.sizes = append(t.blocks, b), append(t.sizes, uint32(size))
	t.live += size
	t.ops++
}

// drop frees a block at random.
func (t *tide) drop() {
	i, last := measure.Below(t.random.Next(), uint64(len(t.blocks))), len(t.blocks)-1
	t.live -= int(t.sizes[i])
	free(t.blocks[i])
	t.blocks[i], t.sizes[i] = t.blocks[last], t.sizes[last]
	t.blocks, t.sizes = t.blocks[:last], t.sizes[:last]
}
