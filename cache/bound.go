// Bound: MaxBytes, which Resize and a budget change.
//
//	0   least     quarter                   now                 full                  most
//	|-----|----------|-----------------------|-------------------|---------------------|
//	                 pressure lowers now to here, or to least, and calm raises it to full
//	      Resize sets full to one of these or between them
//
// Least and most follow from the MaxBytes at New, since the sizes of shards and segments stay. With
// more segments each search for a victim would take longer.

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
	resizeShare  = 8 // Resize goes down to this part of what the cache was made with, and up to as many times it
)

// A bound is set under mu, and its parts are the limits of the shards.
type bound struct {
	c     *Cache
	leave func() // ends the budget's calls, or nil

	mu     sync.Mutex
	full   int
	now    atomic.Int64
	huge   atomic.Int64 // an entry of more is
	spare  atomic.Int64 // of now, and no shard's: see lend.go
	closed bool
}

func (b *bound) init(c *Cache, o *Options) {
	b.c, b.full = c, o.MaxBytes
	b.begin(o.MaxBytes)
	if o.Budget != nil {
		b.leave = o.Budget.OnPressure(o.Priority, func(_ context.Context, p budget.Pressure) { b.press(p) })
	}
}

// Resize changes MaxBytes while the cache is in use. If it becomes less, the call drops entries and
// returns memory to the parent, shard by shard; what readers hold at that moment follows with later
// writes. It panics if maxBytes is less than MinBytes, or less than an eighth or more than eight
// times of the MaxBytes that the cache was made with, since its shards and segments stay as large
// as they are.
func (c *Cache) Resize(maxBytes int) {
	c.base.MustBeOpen(&kind, "Resize")
	const call = "cache.Cache.Resize"
	arg.AtLeast(call, "maxBytes", maxBytes, c.bound.least())
	if made := c.options.MaxBytes; maxBytes/resizeShare > made {
		arg.Panicf(call, "maxBytes %d, want at most %d times %d", maxBytes, resizeShare, made)
	}
	c.bound.mu.Lock()
	defer c.bound.mu.Unlock()
	c.bound.full = maxBytes
	c.bound.set(maxBytes)
}

// least returns the least that the bound may be.
func (b *bound) least() int { return max(b.c.options.MaxBytes/resizeShare, MinBytes) }

// press follows the pressure of a budget.
func (b *bound) press(p budget.Pressure) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
	case p.Level == budget.Calm:
		b.set(b.full)
	default:
		least := int64(max(b.full/pressedShare, b.least()))
		reserved := int64(b.c.Stats().Reserved)
		b.set(int(min(max(reserved-p.Wanted, least), b.now.Load())))
	}
}

func (b *bound) begin(maxBytes int) {
	b.now.Store(int64(maxBytes))
	b.huge.Store(int64(maxBytes / len(b.c.shards) / hugeShare))
}

// set gives each shard its part. Loans end only if the bound becomes less. mu is held.
func (b *bound) set(maxBytes int) {
	before := int(b.now.Load())
	b.begin(maxBytes)
	if maxBytes >= before {
		more := b.c.shardLimit(maxBytes) - b.c.shardLimit(before)
		for i := range b.c.shards {
			b.c.shards[i].grow(more)
		}
		return
	}
	for i := range b.c.shards {
		b.c.shards[i].resize(b.c.shardLimit(maxBytes))
	}
	b.spare.Store(0) // each has its share
}

// close ends the budget's calls. It waits for a call that is under way.
func (b *bound) close() {
	if b.leave != nil {
		b.leave()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}
