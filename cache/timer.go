// Timer: schedules the sweeps of a cache. No timer runs unless an entry has a TTL or memory can be
// given back.
//
// Each sweep has its own timer, which is never reset or stopped: the runtime allows neither from
// outside the testing/synctest bubble that made the timer. A timer does nothing if an earlier sweep
// has taken its place. So that few such timers wait, none is set for more than mostWait. A sweep
// that comes before the first entry expires only schedules the next one.

package cache

import (
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

const mostWait = 60 // seconds

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
	if at := w.at.Load(); at != 0 && at <= second {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := w.at.Load(); w.stopped || at != 0 && at <= second {
		return
	}
	second = min(second, w.clock.now()+mostWait)
	w.at.Store(second)
	cache := w.cache
	time.AfterFunc(max(w.clock.until(second), 0), func() {
		if c := cache.Value(); c != nil {
			c.sweeper.run(c, second)
		}
	})
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
