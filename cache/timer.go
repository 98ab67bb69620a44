// Timer: schedules the sweeps of a cache. No timer runs unless an entry has a TTL or memory can be
// given back.
//
// Each sweep has its own timer, which is never reset or stopped: the runtime allows neither from
// outside the testing/synctest bubble that made the timer. A timer is lost if its bubble ends first.
// Then a later call of wake sets another. A timer does nothing if an earlier sweep has taken its
// place. So that few such timers wait, none is set for more than mostWait. A sweep that comes before
// the first entry expires only schedules the next one.

package cache

import (
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

const (
	mostWait = 60 // seconds
	mostLate = 2  // seconds
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

// wake schedules a sweep for the beginning of the given second, or sooner.
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

// isAwake reports whether a timer fires by the given second. A timer that is later than mostLate was
// lost.
func (w *sweeper) isAwake(second, now uint32) bool {
	at := w.at.Load()
	return at != 0 && at <= second && now <= at+mostLate
}

// run sweeps, unless the sweep of that second has begun or an earlier one has taken its place.
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
