// Epochs: how a writer learns that earlier readers have left.
//
// A reader enters the current epoch and leaves it when it is done. A writer unlinks
// a block and ends the epoch. That epoch has passed once every reader that entered
// before its end has left. Then the writer may reuse the block.
//
//	epoch 1           epoch 2         epoch 3 (current)
//	|---- guard ----------|
//	        |-- guard --|
//	                     |--------- guard ---...
//	               Advance       Advance
//	                     epoch 1 has passed here, epoch 2 has not
//
// An epoch counts its guards in stripes of one cache line each, so that readers on
// two processors seldom write to the same line. A reader picks its stripe by the
// address of its stack.
//
// # Why it is correct
//
// Go's atomic operations are sequentially consistent: they have one total order,
// on weak memory too. In that order, for an epoch r that Advance has swapped out:
//
//	reader:   A1 load current = r    A2 add 1 to r's stripe    A3 load current
//	Advance:  B1 swap current, r becomes the past
//	Passed:   B2 load each of r's stripes
//
// If A3 loads r, then A3 < B1: once swapped out, r never becomes current again,
// since it is on the Go heap and not reused while the reader holds it. So A2 < A3 <
// B1 < B2, and B2 sees the guard unless it has left. If A3 comes after B1, the
// reader subtracts its 1 and enters again: it only keeps a stripe above 0 for a
// moment.
//
// After B1, a stripe is the number of its guards plus that of late readers, and no
// guard is added. So a stripe that is 0 once after B1 has no guards from then on,
// and Passed may read the stripes one by one, at any time.
//
// Leave is an atomic operation on the stripe that B2 loads, so everything that a
// reader did under its guard happens before Passed returns true.

package epoch

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/lockrank"
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

// Domain is a sequence of epochs and their guards. The last epoch is the current
// one. The zero value is ready for use. A Domain is safe for concurrent use and
// must not be copied. It needs no Close. It takes 2 KiB on the Go heap for the
// current epoch and for each earlier one that still has guards.
//
// Containers that share a Domain share its guards. One Enter protects the blocks of
// all of them, and a guard held for long delays reclamation in all of them. Give
// containers with long reads their own Domain.
type Domain struct {
	// Invariants (mu held):
	//   - the epochs ended so far have the numbers 1 to ended
	//   - passed < the numbers in past <= ended, which ascend
	//   - an ended epoch that is not in past has no guards

	current atomic.Pointer[readers] // nil until the first Enter
	passed  atomic.Uint64           // every epoch up to this number has passed

	mu      lockrank.Mutex[lockrank.Leaf] // guards the fields below, and the swap of current
	ended   uint64
	past    []pastEpoch // ended epochs that may have guards
	sweepAt int         // the length of past at which Advance looks through all of it
}

// A pastEpoch is an epoch that was ended while it might have had guards.
type pastEpoch struct {
	readers *readers
	number  uint64
	seen    int // number of leading stripes seen at 0 since it ended
}

// Epoch is an ended epoch, from [Domain.Advance]. It takes 16 bytes and may be kept
// as long as its Domain.
type Epoch struct {
	domain *Domain
	number uint64
}

// Guard protects a reader in a [Domain], from Enter to Leave. While it is held, no
// epoch that ends after Enter passes, so blocks unlinked meanwhile, in any
// container of the Domain, stay valid. The goroutine may block and may pass the
// guard to another goroutine. The zero Guard is of no Domain, and its
// Leave panics.
type Guard struct{ at *stripe }

// Enter returns a guard in the current epoch. The caller must call its Leave. A
// block that the reader finds linked after Enter is not reused before Leave. Enter
// takes no lock and never waits. With Leave it costs two atomic operations on
// memory that processors seldom share (BenchmarkEnterLeave).
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

// join is A2 and A3 of Enter. It reports whether r is still the current epoch; if
// not, it leaves no guard in r.
func (d *Domain) join(r *readers) (Guard, bool) {
	at := &r[pin.Stripe(stripeBits)]
	at.guards.Add(1)
	if d.current.Load() != r {
		at.guards.Add(-1)
		return Guard{}, false
	}
	return Guard{at}, true
}

// enter is Enter's slow path: there is no epoch yet, or the loaded one has ended.
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

// Leave ends the guard. The reader must not use what it found after that, unless
// it knows by other means that it is live. Call Leave exactly once. A second call
// panics if no other guard shares its counter. Otherwise it is not detected and
// ends another reader's guard.
func (g Guard) Leave() {
	if g.at.guards.Add(-1) < 0 {
		g.leftTwice()
	}
}

// leftTwice is not inlined, so that Leave can be.
//
//go:noinline
func (g Guard) leftTwice() {
	g.at.guards.Add(1)
	arg.Panicf("epoch.Guard.Leave", "the guard has left already")
}

// Advance ends the current epoch, begins a new one, and returns the ended one. A
// writer calls it after unlinking blocks, and reuses them once the epoch has
// passed. It takes a lock that readers never take, and 2 KiB on the Go heap. The
// collector may free these as soon as the ended epoch has no guards, whether
// Passed is called or not. Unlink many blocks before one Advance.
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

// Passed reports whether every guard entered before the end of e has left. Once
// true, it stays true, and everything that those readers did happens before it
// returns. It never waits for a guard: call it again later.
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

// sweep drops past epochs without guards: all of them, or those before the first
// with guards. Advance sweeps all whenever past has doubled. That keeps past
// proportional to the epochs with guards, at amortized constant cost. mu is held.
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
