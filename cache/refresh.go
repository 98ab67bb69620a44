// Refresh: GetOrLoad and GetOrLoadMany load older entries again in the background (refresh-ahead).
//
//	the caller   finds that the entry is due --> joins the load --> returns the old value
//	a goroutine                                            '--> loads --> stores --> leaves
//
// An item has the second from which it is due. The first caller from that second on adds
// retrySeconds to the present one by compare-and-swap, and begins the load. So no caller needs a
// lock.

package cache

import (
	"context"
	"sync"
)

// retrySeconds is the time after which an entry is due again if its refresh fails or takes long.
const retrySeconds = 1

// isDue reports whether an entry has reached Options.RefreshAfter. If so, the caller must load it:
// for the next retrySeconds, isDue returns false to all other callers. An entry on disk that had no
// room in memory is read once more, and stays due.
func (c *Cache) isDue(h uint64, key []byte) bool {
	if c.options.RefreshAfter == 0 {
		return false
	}
	s := c.shardOf(h)
	r := c.orFetch(s, s.find(h, key), h, key, false)
	defer s.unpin(r)
	if !r.isLive(&c.clock) {
		return false
	}
	at, now := r.it.due(), c.clock.now()
	due := at.Load()
	return now >= due && at.CompareAndSwap(due, now+retrySeconds)
}

// refresh loads keys again in a goroutine of the cache, unless other goroutines load them.
func (ld *loader) refresh(ctx context.Context, due []wanted) {
	mine, _ := ld.c.join(due)
	if len(mine) == 0 {
		return
	}
	ld.c.loaded.refreshes.Add(uint64(len(mine)))
	ctx, end := ld.c.refreshes.begin(ctx)
	go func() {
		defer end()
		ld.loadJoined(ctx, mine, func(*wanted) bool { return true }, func(*wanted) {})
	}()
}

// refreshes are the loads that run in goroutines of the cache.
type refreshes struct {
	mu  sync.Mutex
	all map[chan struct{}]context.CancelFunc // by the channel that is closed when the load ends

	canceling bool // cancel is under way
}

// begin returns the context of a load that a caller with ctx begins. end ends the load.
func (r *refreshes) begin(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[chan struct{}]context.CancelFunc{}
	}
	r.all[done] = cancel
	if r.canceling {
		cancel()
	}
	return ctx, func() {
		cancel()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.all, done)
		close(done)
	}
}

// cancel cancels all loads, also those that begin meanwhile, and waits until they have ended.
func (r *refreshes) cancel() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.canceling = true
	for _, cancel := range r.all { // all of them first: one may wait for another
		cancel()
	}
	for len(r.all) > 0 {
		for done := range r.all {
			r.mu.Unlock()
			<-done
			r.mu.Lock()
		}
	}
	r.canceling = false // Close may panic
}
