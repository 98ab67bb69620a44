// Scatter: allocate many blocks of one size, then free all in random order.

package main

import "github.com/freehold-go/freehold/lab/bench/sample"

type scatter struct {
	live  []block
	order []uint32
	size  int
	sum   uint64
}

func runScatter(p *params) result {
	r := runThreads(p, func(thread int) looper {
		l := &scatter{
			live:  make([]block, p.Slots),
			order: make([]uint32, p.Slots),
			size:  p.Min,
		}
		rnd := seed(thread)
		for i := range l.order {
			j := slotOf(rnd.Next(), uint64(i+1))
			l.order[i] = l.order[j]
			l.order[j] = uint32(i)
		}
		for i, at := range l.order {
			l.sum += uint64(i) * uint64(at)
		}
		return l
	})
	r.NS /= float64(p.Slots) // a loop is a round of all blocks
	r.Ops *= p.Slots
	return r
}

func (l *scatter) loop(n int) {
	for range n {
		for i := range l.live {
			b, err := alloc(l.size)
			if err != nil {
				sample.Fail(err)
			}
			touch(b)
			l.live[i] = b
		}
		for _, at := range l.order {
			free(l.live[at])
		}
	}
}

func (l *scatter) checksum() uint64 { return l.sum }
