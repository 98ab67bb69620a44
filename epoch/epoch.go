// Epochs: epoch-based reclamation, and the proof that it is correct.
//
// A reader enters the current epoch and leaves it when it is done. A writer unlinks a block and
// ends the epoch. The epoch has passed once every reader that entered before its end has left.
// Then the writer may reuse the block.
//
//	epoch 1           epoch 2         epoch 3 (current)
//	|---- guard ----------|
//	        |-- guard --|
//	                     |--------- guard ---...
//	               Advance       Advance
//	                     epoch 1 has passed here, epoch 2 has not
//
// Epochs have ascending numbers. A guard is in one of two places:
//
//   - A slot, one of the eight of its processor in each Domain. It holds the number of the guard's
//     epoch, or 0. Only a goroutine on that processor fills it, so Enter needs no locked
//     instruction: see guard.go.
//   - A striped counter of the epoch, if the processor has no free slot or the system has no
//     fences: see count.go.
//
// # Why it is correct
//
// Go's atomic operations are sequentially consistent: they have one total order, on
// weak memory too. In that order, for epoch n and a slot:
//
//	reader:   A1 load that n is current   A2 store n in the slot   A3 load the current epoch
//	Advance:  B1 end epoch n
//	Passed:   B2 fence                    B3 load the slot
//
// If A3 finds that n is current, then A3 < B1, since numbers never return. So A2 < A3 < B1 < B3,
// and B3 sees the guard unless it has left. If A3 comes after B1, the reader is late: it clears the
// slot and enters again, so the slot is filled only for a moment.
//
// On amd64 A2 is a plain store, which the processor may delay beyond A3. There B2 makes every
// thread execute a full barrier. The reader's thread does so after A3, since a load after the
// barrier would see B1. So A2 is before the barrier, and visible to B3. A goroutine does not change
// threads between A2 and A3: they are in a leaf, or under a pin.
//
// After B2 only late readers fill a slot with n. So once a slot is empty or holds more than n, it
// has no guards of epochs up to n from then on, and Passed may read the slots one by one, at any
// time. A late reader may make Passed find fewer passed epochs than before, so the field passed
// only grows.
//
// With a counter in place of the slot, A1 and A3 load the current counters, A2 adds 1, B1 swaps the
// counters for none, and B3 loads the counter. No fence is needed.
//
// Leave is a store or an atomic operation on a word that B3 loads. Neither the compiler nor the
// processor moves earlier accesses behind it. So everything that a reader did under its guard
// happens before Passed returns true.

package epoch

import (
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/lockrank"
)

// Domain is a sequence of epochs and their guards. The last epoch is the current one. The zero
// value is ready for use. A Domain is safe for concurrent use and must not be copied. It needs no
// Close. It takes 64 bytes for each processor on the Go heap. An epoch in which a processor has
// more than eight guards at a time takes 2 KiB more.
//
// Containers that share a Domain share its guards. One Enter protects the blocks of
// all of them, and a guard held for long delays reclamation in all of them. Give
// containers with long reads their own Domain.
type Domain struct {
	// Invariants (mu held):
	//   - epochs 1 to ended have ended; the next one is current
	//   - passed <= fenced <= ended
	//   - the numbers in past ascend, and passed < each of them <= ended
	//   - an ended epoch whose counters are not in past has no guards in counters

	ended    atomic.Uint64            // grows under mu
	slots    atomic.Pointer[line]     // one line a processor; nil while no guard may be in slots
	counters atomic.Pointer[counters] // the current epoch's; nil until a reader counts
	passed   atomic.Uint64            // every epoch up to this number has passed

	mu      lockrank.Mutex[lockrank.Leaf] // guards the fields below, and the swap of counters
	fenced  uint64                        // B2 came after the end of every epoch up to this number
	past    []pastEpoch                   // ended epochs that may have guards in counters
	sweepAt int                           // the length of past above which Advance sweeps all of it
}

// A pastEpoch is an epoch that was ended while it might have had guards in counters.
type pastEpoch struct {
	counters *counters
	number   uint64
	seen     int // number of leading counters that were 0 at some time since the end
}

// Epoch is an ended epoch, from [Domain.Advance]. It takes 16 bytes and may be kept
// as long as its Domain.
type Epoch struct {
	domain *Domain
	number uint64
}

// Advance ends the current epoch, begins a new one, and returns the ended one. A writer calls it
// after unlinking blocks, and reuses them once the epoch has passed. It takes a lock that readers
// never take. To save time, unlink many blocks before one Advance.
func (d *Domain) Advance() *Epoch {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.ended.Add(1)
	if c := d.counters.Swap(nil); c != nil {
		d.past = append(d.past, pastEpoch{counters: c, number: n})
		if len(d.past) > d.sweepAt {
			d.sweep(true)
			d.sweepAt = 2 * len(d.past)
		}
	}
	return &Epoch{domain: d, number: n}
}

// Passed reports whether every guard entered before the end of e has left. Once true, it stays
// true, and everything that these readers did happens before it returns. It never waits for a
// guard: call it again later. Until it is true, each call takes a lock and reads all guards. Once
// an epoch it executes a fence in all threads, which takes about a microsecond.
func (e *Epoch) Passed() bool {
	d := e.domain
	if d.passed.Load() >= e.number {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.number > d.fenced {
		ended := d.ended.Load()
		if d.slots.Load() != nil {
			fence()
		}
		d.fenced = ended
	}
	passed := min(d.fenced, d.oldestInSlots()-1)
	d.sweep(false)
	if len(d.past) > 0 {
		passed = min(passed, d.past[0].number-1)
	}
	d.passed.Store(max(passed, d.passed.Load()))
	return d.passed.Load() >= e.number
}

// sweep removes epochs without guards in counters from past. Unless all is set, it stops at the
// first epoch with guards. Advance sweeps all whenever past has doubled. That keeps past
// proportional to the epochs with guards in counters, at amortized constant cost. mu is held.
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
}

// empty reports whether the epoch has no guards in counters.
func (p *pastEpoch) empty() bool {
	for p.seen < numCounters && p.counters[p.seen].guards.Load() == 0 {
		p.seen++
	}
	return p.seen == numCounters
}
