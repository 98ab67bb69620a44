// Grow: one block from 1 MiB by doubling, with realloc and with a copy.
//
// Only the calls are timed. Every page of the block is touched before each
// step, outside the time, so there is always something to move.

package alloc

import (
	"errors"
	"testing"
	"time"

	"github.com/freehold-go/freehold/lab/bench/measure"
)

// A step makes a block of one size into one of another, with its contents.
type step func(b block, from, to int) (block, error)

func BenchmarkGrow(b *testing.B) {
	const small = 16 << 20 // the round to warm up ends here
	for _, how := range []struct {
		by string
		step
	}{{"realloc", realloc}, {"copy", copied}} {
		measure.Run(b, "by="+how.by, peer, func(b *testing.B) {
			block, err := how.step(must(alloc(growFrom)), growFrom, growFrom)
			if errors.Is(err, errCannot) {
				b.Skip(err)
			}
			free(must(block, err))
			top := min(small, measure.Size().Top)
			measure.Rounds(b, 1, func() time.Duration {
				defer func() { top = measure.Size().Top }()
				return grow(top, how.step)
			})
			measure.Sum(b, uint64(top))
		})
	}
}

func copied(old block, from, to int) (block, error) {
	b, err := alloc(to)
	if err != nil {
		return b, err
	}
	copy(bytes(b, to), bytes(old, from))
	free(old)
	return b, nil
}

const (
	growFrom = 1 << 20
	pageStep = 4096
)

func grow(top int, how step) (spent time.Duration) {
	b := must(alloc(growFrom))
	stamp(bytes(b, growFrom), 0)
	for size := growFrom; size < top; size *= 2 {
		start := time.Now()
		grown, err := how(b, size, 2*size)
		spent += time.Since(start)
		b = must(grown, err)
		if data := bytes(b, 2*size); data[0] != 1 || data[size-pageStep] != 1 {
			panic("the block lost its contents")
		}
		stamp(bytes(b, 2*size), size)
	}
	free(b)
	return spent
}

// stamp touches every page of b from the given byte on.
func stamp(b []byte, from int) {
	for i := from; i < len(b); i += pageStep {
		b[i] = 1
	}
}
