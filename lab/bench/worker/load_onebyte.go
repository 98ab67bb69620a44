// One byte: a zeroed block of which only the first byte is used, over and over.

package main

import (
	"time"

	"github.com/freehold-go/freehold/lab/process"

	"github.com/freehold-go/freehold/lab/bench/sample"
)

func init() { loads["onebyte"] = runOneByte }

// runOneByte times Zeroed, touch and free. Resident memory, the most of all
// rounds, is read while the block is live and outside of the time.
func runOneByte(p *params) (r result) {
	const warm, usual = 2, 16
	rounds := p.Ops
	if rounds == 0 {
		rounds = usual
	}
	before, err := process.Resident()
	if err != nil {
		return result{Skip: err.Error()}
	}
	var kept keeper
	round := func() (spent time.Duration) {
		start := time.Now()
		b, err := zeroed(p.Min)
		if err != nil {
			sample.Fail(err)
		}
		kept.keep(b)
		touch(b)
		spent = time.Since(start)
		now, err := process.Resident()
		if err != nil {
			sample.Fail(err)
		}
		r.Resident = max(r.Resident, now-min(before, now))
		start = time.Now()
		free(b)
		return spent + time.Since(start)
	}
	for range warm {
		round()
	}
	sample.Begin()
	spent := time.Duration(0)
	for range rounds {
		spent += round()
	}
	sample.End()
	r.NS, r.Ops = float64(spent)/float64(rounds), rounds
	r.Requested, r.Sum = uint64(p.Min), uint64(rounds)*uint64(p.Min)
	return r
}
