// Bound: MaxBytes, which Resize and a budget change.
//
//	0          quarter                     now                 full
//	|-------------|-------------------------|--------------------|
//	              pressure lowers now to here, and calm raises it to full, which Resize sets

package cache

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/internal/arg"
)

const (
	pressedShare = 4 // pressure leaves this part of full
	resizeShare  = 8 // Resize goes down to this part of what the cache was made with
)

// A bound is set under mu, and its parts are the limits of the shards.
type bound struct {
	c     *Cache
	leave func() // ends the budget's calls, or nil

	mu     sync.Mutex
	full   int
	now    atomic.Int64
	closed bool
}

func (b *bound) init(c *Cache, o *Options) {
	b.c, b.full = c, o.MaxBytes
	b.now.Store(int64(o.MaxBytes))
	if o.Budget != nil {
		b.leave = o.Budget.OnPressure(o.Priority, func(_ context.Context, p budget.Pressure) { b.press(p) })
	}
}

// Resize changes MaxBytes while the cache is in use. If it becomes less, the call drops entries
// and returns memory to the parent, shard by shard; what readers hold at that moment follows with
// later writes. It panics if maxBytes is less than an eighth of the MaxBytes that the cache was made
// with, since its shards and segments stay as large as they are.
func (c *Cache) Resize(maxBytes int) {
	c.base.MustBeOpen(&kind, "Resize")
	arg.AtLeast("cache.Cache.Resize", "maxBytes", maxBytes, c.options.MaxBytes/resizeShare)
	c.bound.mu.Lock()
	defer c.bound.mu.Unlock()
	c.bound.full = maxBytes
	c.bound.set(maxBytes)
}

// press follows the pressure of a budget.
func (b *bound) press(p budget.Pressure) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
	case p.Level == budget.Calm:
		b.set(b.full)
	default:
		reserved := int64(b.c.Stats().Reserved)
		b.set(int(min(max(reserved-p.Wanted, int64(b.full/pressedShare)), b.now.Load())))
	}
}

// set gives each shard its part. mu is held.
func (b *bound) set(maxBytes int) {
	b.now.Store(int64(maxBytes))
	for i := range b.c.shards {
		b.c.shards[i].resize(b.c.shardLimit(maxBytes))
	}
}

// close ends the budget's calls, of which one may be under way.
func (b *bound) close() {
	if b.leave != nil {
		b.leave()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}
