// One byte: a zeroed block of which only the first byte is used, over and over.

package main

import (
	"time"

	"github.com/freehold-go/freehold/lab/process"
)

func init() { loads["onebyte"] = runOneByte }

// runOneByte times Zeroed, touch and free. Resident memory, the most of all
// rounds, is read while the block is live and outside of the time.
func runOneByte(p *params) (r result) {
	const warm, usual = 2, 16
	rounds := p.ops
	if rounds == 0 {
		rounds = usual
	}
	before, err := process.Resident()
	if err != nil {
		return result{skip: err.Error()}
	}
	var kept keeper
	round := func() (spent time.Duration) {
		start := time.Now()
		b, err := zeroed(p.min)
		if err != nil {
			fail(err)
		}
		kept.keep(b)
		touch(b)
		spent = time.Since(start)
		now, err := process.Resident()
		if err != nil {
			fail(err)
		}
		r.resident = max(r.resident, now-min(before, now))
		start = time.Now()
		free(b)
		return spent + time.Since(start)
	}
	for range warm {
		round()
	}
	begin()
	spent := time.Duration(0)
	for range rounds {
		spent += round()
	}
	end()
	r.ns, r.ops = float64(spent)/float64(rounds), rounds
	r.requested, r.sum = uint64(p.min), uint64(rounds)*uint64(p.min)
	return r
}
