// Pressure: callbacks that give memory back.
//
// A tick finds the level. When it rises or is Calm again, and each second while it is not, a
// round runs in a goroutine of its own: it trims the heaps, looks again, and asks the callbacks in
// order until enough is free. What happens meanwhile is for the next round.

package budget

import (
	"context"
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
	"github.com/freehold-go/freehold/internal/arg"
)

const (
	roundTime = time.Second
	callTime  = time.Second // that a callback may take
)

// OnPressure has f called when memory is short, until remove is called, or Stop. Callbacks of
// a lower priority are called first, those of one priority in the order of OnPressure. All heaps
// are trimmed before, and the next callback is called only if more is wanted then. So caches
// that are cheap to fill again have a low priority.
//
// f is called within some milliseconds of a rise of the level, once a second while it is not
// [Calm], and once when it is Calm again. While the process itself is at its limit, f is called
// again as soon as all have returned if off-heap memory was freed, and else after 5 ms, 10 ms and
// so on up to a second. It should give back Wanted bytes or what it can: free blocks, or drop
// references. f runs in a goroutine of its own, never twice at once. Its context ends after a
// second: then the next callback is called, and f is left out until it returns. A panic of f is
// recovered and reported in [Stats].
//
// The heaps are trimmed after each callback too, so f need not call Trim for what it frees to
// count.
//
// f may call remove, and it may allocate. It may still run when remove or Stop returns. After
// Stop OnPressure does nothing. It panics if f is nil.
func (b *Budget) OnPressure(priority int, f func(context.Context, Pressure)) (remove func()) {
	if f == nil {
		arg.Panicf("Budget.OnPressure", "f is nil")
	}
	return b.callbacks.add(priority, f)
}

// notePressure finds the pressure, and wakes the rounds if they have something to do. mu is
// held.
func (b *Budget) notePressure(f figures) {
	now := b.system.now()
	before := b.pressure
	own := before.Level
	if !b.danger {
		own = min(own, Soft) // Hard is the account's
	}
	room := f.limit - f.headroom
	p, shared := pressure.Of(f.needed(), room, own, b.watch.Signaled(now)), b.share(f)
	b.pressure = Pressure{max(p.Level, shared.Level), max(p.Wanted, shared.Wanted)}
	b.rise = pressure.Rise(f.needed(), room, b.pressure.Level)
	begins := p.Level == Hard && !b.danger
	if begins {
		b.pause = tickTime
	}
	b.danger = p.Level == Hard
	b.logLevel(now)
	level := b.pressure.Level
	rises, ends := level > before.Level || begins, level == Calm && before.Level > Calm
	if again := level > Calm && !pressure.Ahead(now, b.roundNext); !rises && !ends && !again {
		return
	}
	b.roundNext = now.Add(roundTime)
	b.rounds.wake()
}

// round trims the heaps and calls the callbacks. Ticks wake the next one: in danger the next tick
// does, as Go's heap may grow by more in a second than there is. A round that has freed nothing
// makes the pause after it twice as long.
func (b *Budget) round() (next time.Duration) {
	before := b.system.offHeap()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.pause = min(2*b.pause, roundTime); b.system.offHeap() < before {
			b.pause = tickTime
		}
		if b.danger {
			b.roundNext = b.system.now().Add(b.pause)
		}
	}()
	b.trimIfShort()
	b.mu.Lock()
	tell := b.pressure.Level > Calm || b.told > Calm
	b.told = b.pressure.Level
	b.logLevel(b.system.now())
	b.rounded++
	b.mu.Unlock()
	if tell {
		b.callbacks.tell(b.look, b.trimIfShort, b.hasStopped)
	}
	return 0
}

// trimIfShort trims the heaps unless the pressure is Calm, and looks at the figures then.
func (b *Budget) trimIfShort() {
	if b.look().Level > Calm {
		b.system.trim()
		b.tick()
	}
}

// look returns the pressure.
func (b *Budget) look() Pressure {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pressure
}
