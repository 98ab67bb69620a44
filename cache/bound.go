// Bound: MaxBytes, as Resize and a budget change it.
//
//	0   least     full/4                    now                 full                  most
//	|-----|----------|-----------------------|-------------------|---------------------|
//	                 |<-- pressure lowers now, to full/4 or least; calm raises it to full
//	      |<---------------------- Resize sets full, and now ------------------------->|
//
// Least and most follow from the MaxBytes given to New, since the number of shards and the size of
// segments never change. A larger bound has more segments, and each search for a victim takes longer.

package cache

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/internal/arg"
)

const (
	pressedShare = 4 // pressure leaves 1/pressedShare of full
	resizeShare  = 8 // Resize sets 1/resizeShare to resizeShare times New's MaxBytes
)

// A bound has the present MaxBytes of a cache. A change of it holds mu and sets the limits of the
// shards.
type bound struct {
	c     *Cache
	leave func() // unregisters from the budget, or nil

	mu     sync.Mutex
	full   int          // the bound without pressure
	now    atomic.Int64 // the bound
	huge   atomic.Int64 // entries of more bytes are huge: see isHuge
	unlent atomic.Int64 // now minus all limits: see lend.go; negative while readers hold more than now
	closed bool
}

func (b *bound) init(c *Cache, o *Options) {
	b.c, b.full = c, o.MaxBytes
	b.store(o.MaxBytes)
	if o.Budget != nil {
		weakly := weak.Make(c) // so that the budget does not keep a cache that is dropped
		b.leave = o.Budget.OnPressure(o.Priority, func(_ context.Context, p budget.Pressure) {
			if c := weakly.Value(); c != nil {
				c.bound.press(p)
			}
		})
		runtime.AddCleanup(c, func(leave func()) { leave() }, b.leave)
	}
}

// Resize changes MaxBytes, in bytes, while the cache is in use. If MaxBytes becomes less, Resize
// drops entries and returns memory to the parent. It locks one shard after the other, each until its
// entries are dropped. Memory that readers hold at that moment is returned by later writes.
//
// Resize panics if maxBytes is less than MinBytes, or less than an eighth or more than eight times
// the MaxBytes that New got: the number of shards and the size of segments do not change.
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

// least returns the lowest value of the bound.
func (b *bound) least() int { return max(b.c.options.MaxBytes/resizeShare, MinBytes) }

// press lowers the bound under the budget's pressure, and restores it when the pressure is calm.
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

// store sets the bound, and the size above which entries are huge.
func (b *bound) store(maxBytes int) {
	b.now.Store(int64(maxBytes))
	b.huge.Store(int64(maxBytes / len(b.c.shards) / hugeShare))
}

// set changes the bound and the limit of each shard. If the bound becomes less, all loans end, except
// of bytes that readers hold: a shard that has lent bytes uses them once the other has evicted.
//
// Precondition: mu is held.
func (b *bound) set(maxBytes int) {
	before := int(b.now.Load())
	b.store(maxBytes)
	if maxBytes >= before {
		more := b.c.shardLimit(maxBytes) - b.c.shardLimit(before)
		for i := range b.c.shards {
			b.c.shards[i].grow(more)
		}
		return
	}
	defer forAll(b.c.shards, (*shard).endLoan)
	forAll(b.c.shards, func(s *shard) { s.resize(b.c.shardLimit(maxBytes)) })
}

// close unregisters from the budget. It waits for a running call of press.
func (b *bound) close() {
	if b.leave != nil {
		b.leave()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}
