// Counters: striped counters for guards without a slot.
//
// A reader picks its counter by the address of its stack, so readers on two processors seldom write
// to the same cache line.

package epoch

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin"
)

const (
	counterBits = 5
	numCounters = 1 << counterBits
)

// counters count the guards of one epoch: 2 KiB.
type counters [numCounters]struct {
	guards atomic.Uint64
	_      [64 - unsafe.Sizeof(atomic.Uint64{})]byte
}

// count enters a guard in a counter.
func (d *Domain) count() Guard {
	for {
		c := d.counters.Load() // A1
		if c == nil {
			d.counters.CompareAndSwap(nil, new(counters))
			continue
		}
		if g, ok := d.countIn(c); ok {
			return g
		}
	}
}

// countIn is A2 and A3 of Enter. If c is no longer current, it leaves no guard there and reports
// false.
func (d *Domain) countIn(c *counters) (Guard, bool) {
	at := &c[pin.Stripe(counterBits)].guards
	at.Add(1)
	if d.counters.Load() != c {
		at.Add(^uint64(0))
		return Guard{}, false
	}
	return Guard{at, inCounter}, true
}

// uncount is Leave for a guard in a counter. It panics for a guard that has left already. It is not
// inlined, so that Leave can be.
//
//go:noinline
func (g Guard) uncount() {
	if g.epoch != inCounter {
		leftTwice()
	}
	if int64(g.at.Add(^uint64(0))) < 0 {
		g.at.Add(1)
		leftTwice()
	}
}
