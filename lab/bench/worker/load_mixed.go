// Mixed: many live blocks; each step frees a random one and allocates another
// of a random size in its place.

package main

import (
	"github.com/freehold-go/freehold/lab/bench/random"

	"github.com/freehold-go/freehold/lab/bench/sample"
)

type mixed struct {
	live      []block
	min, span uint64
	random    random.State
	sum       uint64
}

func runMixed(p *params) result {
	return runThreads(p, func(thread int) looper {
		l := &mixed{
			live: make([]block, p.Slots),
			min:  uint64(p.Min), span: uint64(p.Max - p.Min + 1),
			random: seed(thread),
		}
		for i := range l.live {
			size := sizeOf(l.random.Next(), l.min, l.span)
			b, err := alloc(int(size))
			if err != nil {
				sample.Fail(err)
			}
			touch(b)
			l.live[i] = b
			l.sum += size
		}
		return l
	})
}

func (l *mixed) loop(n int) {
	live, min, span, rnd, sum := l.live, l.min, l.span, l.random, l.sum
	for range n {
		x := rnd.Next()
		slot, size := slotOf(x, uint64(len(live))), sizeOf(x, min, span)
		free(live[slot])
		b, err := alloc(int(size))
		if err != nil {
			sample.Fail(err)
		}
		touch(b)
		live[slot] = b
		sum += slot ^ size
	}
	l.random, l.sum = rnd, sum
}

func (l *mixed) checksum() uint64 { return l.sum }
