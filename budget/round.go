// Rounds: trimming the heaps, and calling the functions of OnPressure.

package budget

import (
	"context"
	"time"

	"github.com/freehold-go/freehold/internal/arg"
)

// OnPressure calls f when memory is short, until remove is called, or Stop. Functions with a lower
// priority are called first, and functions of equal priority in the order in which they were added.
// All heaps are trimmed before the first function and after each one, so f need not call Trim. The
// next function is called only if more memory is wanted then. So give a low priority to caches that
// are cheap to fill again.
//
// f is called within some milliseconds of a rise of the level, once a second while the level is not
// [Calm], and once when it is Calm again. While the process itself is at its limit, f is called
// again about 5 ms after all functions have returned if off-heap memory was freed. If none was
// freed, this pause doubles each time, up to a second.
//
// f should give back [Pressure].Wanted bytes, or as much as it can: free blocks, or drop
// references. It runs in a goroutine of its own, and never twice at once. Its context ends after a
// second. Then the next function is called, and f is not called again until it returns. A panic of
// f is recovered and reported in [Stats].
//
// f may call remove, and it may allocate. It may still run when remove or Stop returns. After Stop,
// f is never called. OnPressure panics if f is nil.
func (b *Budget) OnPressure(priority int, f func(context.Context, Pressure)) (remove func()) {
	if f == nil {
		arg.Panicf("Budget.OnPressure", "f is nil")
	}
	return b.callbacks.add(priority, f)
}

// round does one round. Ticks wake it.
func (b *Budget) round() (next time.Duration) {
	before := b.system.offHeap()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.alarm.end(b.system.offHeap() < before, b.system.now())
	}()
	b.trimIfShort()
	b.mu.Lock()
	b.alarm.roundCount++
	call := b.reported.startRound(b.alarm.pressure.Level)
	b.logLevel(b.system.now())
	b.mu.Unlock()
	if call {
		b.callbacks.tell(b.currentPressure, b.trimIfShort, b.hasStopped)
	}
	return 0
}

// trimIfShort trims all heaps and then ticks, unless the level is Calm.
func (b *Budget) trimIfShort() {
	if b.currentPressure().Level > Calm {
		b.system.trim()
		b.tick()
	}
}
