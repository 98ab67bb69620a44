// Timer: schedules the sweeps of a cache. No timer runs unless an entry has a TTL or memory can be
// given back.
//
// Each sweep has its own timer, which is never reset or stopped: the runtime allows neither from
// outside the testing/synctest bubble that made the timer. A timer is lost if its bubble ends first.
// Then a later call of wake sets another.
//
// If a sweep is scheduled for an earlier second, the timer of the later sweep stays, and does
// nothing. No timer waits longer than mostWait, so such timers are few. A sweep before the first
// expiry only schedules the next one.

package cache

import (
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

const (
	mostWait = 60 // seconds until a timer fires, at most
	mostLate = 2  // seconds after which a timer counts as lost
)

// A sweeper runs the sweeps of a cache. It keeps the cache alive only during a sweep.
type sweeper struct {
	cache  weak.Pointer[Cache]
	clock  *clock
	sweep  func(c *Cache)
	sweeps sync.Mutex    // held during a sweep; locked before the lock of a shard
	at     atomic.Uint32 // the second of the next sweep; 0 is none

	mu      sync.Mutex // guards stopped and stores to at; locked after the lock of a shard
	stopped bool
}

func (w *sweeper) init(c *Cache, sweep func(c *Cache)) {
	w.cache, w.clock, w.sweep = weak.Make(c), &c.clock, sweep
}

// wake schedules a sweep for the beginning of the given second, or earlier.
func (w *sweeper) wake(second uint32) {
	now := w.clock.now()
	second = min(max(second, now), now+mostWait)
	if w.isAwake(second, now) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped || w.isAwake(second, now) {
		return
	}
	w.at.Store(second)
	cache := w.cache
	time.AfterFunc(max(w.clock.until(second), 0), func() {
		if c := cache.Value(); c != nil {
			c.sweeper.run(c, second)
		}
	})
}

// isAwake reports whether a timer fires by the given second, unless it is lost.
func (w *sweeper) isAwake(second, now uint32) bool {
	at := w.at.Load()
	return at != 0 && at <= second && now <= at+mostLate
}

// run sweeps, unless that sweep has begun or an earlier one has replaced it.
func (w *sweeper) run(c *Cache, second uint32) {
	w.sweeps.Lock()
	defer w.sweeps.Unlock()
	if w.isDue(second) {
		w.sweep(c)
	}
}

func (w *sweeper) isDue(second uint32) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.stopped && w.at.CompareAndSwap(second, 0)
}

// stop ends the sweeps, and waits for one that is under way.
func (w *sweeper) stop() {
	w.mu.Lock()
	w.stopped = true // a sweep that has yet to begin does nothing
	w.mu.Unlock()
	w.sweeps.Lock()
	defer w.sweeps.Unlock()
}
