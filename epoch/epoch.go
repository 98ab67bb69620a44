// Epochs: how a writer learns that the readers of before have left.
//
// A reader enters the current epoch and leaves it when it is done. A writer that
// has unlinked something ends the epoch, and may reuse the thing once that epoch
// has passed: then every reader that entered before the end has left.
//
//	epoch 1           epoch 2         epoch 3 (current)
//	|---- guard ----------|
//	        |-- guard --|
//	                     |--------- guard ---...
//	               Advance       Advance
//	                     epoch 1 has passed here, epoch 2 has not
//
// An epoch counts its guards in stripes, a cache line each, so that readers on
// two processors seldom write to one line. A reader picks its stripe by the
// address of its stack.
//
// # Why it is right
//
// Go's atomic operations have one order that every goroutine agrees on, on weak
// memory too. In that order, for an epoch r that Advance has swapped out:
//
//	reader:   A1 load current = r    A2 add 1 to r's stripe    A3 load current
//	Advance:  B1 swap current, r becomes the past
//	Passed:   B2 load each of r's stripes
//
// A reader whose A3 still finds r has A3 before B1, since r, once swapped out,
// never becomes current again: it is on the Go heap and not reused while the
// reader holds it. So A2 < A3 < B1 < B2, and B2 sees the guard unless it has
// left. A reader whose A3 comes after B1 takes its 1 back and enters again;
// all that it does is to keep a stripe above 0 for a moment.
//
// After B1 a stripe is the guards in it plus such late ones, none negative, and
// no guard is added any more. A stripe that was 0 once after B1 has no guards
// from then on, and the stripes may be looked at one by one, at any pace.
//
// Leave is an atomic operation on the stripe that B2 loads: all that a reader
// did under its guard happens before Passed returns true.

package epoch

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/pin"
)

const (
	stripeBits = 5
	stripes    = 1 << stripeBits
)

// readers counts the guards of one epoch: 2 KiB.
type readers [stripes]stripe

type stripe struct {
	guards atomic.Int64
	_      [64 - unsafe.Sizeof(atomic.Int64{})]byte
}

// Domain is a sequence of epochs, of which the last is the current one, and the
// guards in them. The zero value is ready for use. It is safe for concurrent
// use, and must not be copied. It needs no Close: 2 KiB on the Go heap for the
// current epoch, and as much for each earlier one that still has guards.
//
// Containers that share a Domain share its guards: one Enter protects the
// blocks of all of them, and a guard that is held for long keeps what any of them
// gives up meanwhile. Give a Domain of its own to what is read for long.
//
// Invariants (mu held):
//   - the epochs ended so far have the numbers 1 to ended
//   - passed < the numbers in past <= ended, which ascend
//   - an ended epoch that is not in past has no guards
type Domain struct {
	current atomic.Pointer[readers] // nil until the first Enter
	passed  atomic.Uint64           // every epoch up to this number has passed

	mu      sync.Mutex // guards what follows, and who swaps current
	ended   uint64
	past    []pastEpoch // ended epochs that may have guards
	sweepAt int         // the length of past at which Advance looks through all of it
}

// A pastEpoch is an epoch that was ended while it might have had guards.
type pastEpoch struct {
	readers *readers
	number  uint64
	seen    int // its first stripes, which were seen at 0 since it ended
}

// Epoch is an epoch that has ended, from [Domain.Advance]. It may be kept for as
// long as its Domain, and takes 16 bytes.
type Epoch struct {
	domain *Domain
	number uint64
}

// Guard is a reader's stay in a [Domain], from Enter to Leave. It may be held while
// its goroutine blocks, and be handed to another goroutine. While it is held no
// epoch passes that ends after Enter, so what is unlinked meanwhile, in any
// container of the Domain, stays as it is. The zero Guard is of no Domain.
type Guard struct{ at *stripe }

// Enter begins a reader's stay in the current epoch, which the caller must end by
// Leave. What the reader finds linked after Enter has returned is not reused
// before Leave. It takes no lock and never waits; with Leave it costs two atomic
// operations on memory that processors seldom share (BenchmarkEnterLeave).
func (d *Domain) Enter() Guard {
	r := d.current.Load()
	if r == nil {
		return d.enter()
	}
	g, ok := d.join(r)
	if !ok {
		return d.enter()
	}
	return g
}

// join is A2 and A3 of Enter: it reports whether r is still the current epoch,
// and leaves no guard in it if not.
func (d *Domain) join(r *readers) (Guard, bool) {
	at := &r[pin.Stripe(stripeBits)]
	at.guards.Add(1)
	if d.current.Load() != r {
		at.guards.Add(-1)
		return Guard{}, false
	}
	return Guard{at}, true
}

// enter is Enter's slow path: there is no epoch yet, or it has just ended.
func (d *Domain) enter() Guard {
	for {
		r := d.current.Load()
		if r == nil {
			d.current.CompareAndSwap(nil, new(readers))
			continue
		}
		if g, ok := d.join(r); ok {
			return g
		}
	}
}

// Leave ends the stay. From then on the reader must not use what it found, unless
// it knows otherwise that it is live. Leave must be called exactly once. A second
// call panics if no other guard shares its counter; otherwise it is not detected,
// and ends the stay of another reader.
func (g Guard) Leave() {
	if g.at.guards.Add(-1) < 0 {
		g.leftTwice()
	}
}

// leftTwice is not inlined, so that Leave is.
//
//go:noinline
func (g Guard) leftTwice() {
	g.at.guards.Add(1)
	arg.Panicf("epoch.Guard.Leave", "the guard has left already")
}

// Advance ends the current epoch, begins a new one, and returns the ended one. A
// writer calls it after unlinking, and reuses what it unlinked when the epoch has
// passed. It takes a lock that readers never take, and 2 KiB on the Go heap,
// which the collector may take back as soon as the ended epoch has no guards,
// whether Passed is called or not: one Advance for many things unlinked is
// cheaper than one for each.
func (d *Domain) Advance() *Epoch {
	next := new(readers)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended++
	if r := d.current.Swap(next); r != nil {
		d.past = append(d.past, pastEpoch{readers: r, number: d.ended})
	}
	d.sweep(len(d.past) > d.sweepAt)
	return &Epoch{domain: d, number: d.ended}
}

// Passed reports whether every guard that was entered before e ended has left.
// Once true it stays true, and all that those readers did happens before it. It
// never waits for a guard: ask again later.
func (e *Epoch) Passed() bool {
	d := e.domain
	if d.passed.Load() >= e.number {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep(false)
	return d.passed.Load() >= e.number
}

// sweep drops past epochs that have no guards: the first ones up to one that
// has, or all. Looking at all whenever past has doubled keeps past in proportion
// to the epochs with guards, at a constant cost for each Advance. mu is held.
func (d *Domain) sweep(all bool) {
	kept := d.past[:0]
	for i := range d.past {
		p := &d.past[i]
		if (all || len(kept) == 0) && p.empty() {
			continue
		}
		kept = append(kept, *p)
	}
	clear(d.past[len(kept):])
	d.past = kept
	if all {
		d.sweepAt = 2 * len(kept)
	}
	passed := d.ended
	if len(kept) > 0 {
		passed = kept[0].number - 1
	}
	d.passed.Store(passed)
}

// empty reports whether the epoch has no guards.
func (p *pastEpoch) empty() bool {
	for p.seen < stripes && p.readers[p.seen].guards.Load() == 0 {
		p.seen++
	}
	return p.seen == stripes
}
