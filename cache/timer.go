// Timer: has a cache swept when an entry expires, or when there is memory to give back. It runs
// only then.
//
// Each sweep has its own timer, which is never reset or stopped: outside of its testing/synctest
// bubble a timer allows neither. A timer fires for nothing if an earlier sweep was begun meanwhile.
// So that few such timers wait, a sweep comes after mostWait at the latest.

package cache

import (
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

const mostWait = 60 // seconds

// A sweeper begins the sweeps of a cache. It keeps the cache alive only during a sweep.
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

// wake has the cache swept when the given second begins, or before.
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

// run sweeps, if the sweep of that second is still to come.
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
