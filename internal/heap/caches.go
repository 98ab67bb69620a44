// Caches: the caches of all processors.
//
// # Draining
//
// A drain returns the blocks in the caches to the spans. pin.Table.Drain takes the caches out of
// their slots; its table.go proves that no goroutine uses a cache that was taken. After that each
// free block is in a taken cache, in a depot or in a span. None is on its way between two of these:
// a goroutine that moves a magazine holds a depot's lock, and it holds the slot while it touches
// the cache. Drain waits for the slot, and small.Heap.Shrink waits for the lock.

package heap

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/small"
)

// caches has the slots of a heap, each with a cache or without.
type caches struct {
	pages     *pages.Heap
	small     *small.Heap
	drainedAt atomic.Int64                      // time of the last drain, in nanoseconds of Unix time
	counting  lockrank.Mutex[lockrank.Counting] // held during a drain, and while blocks are counted

	pin.Table[cache] // last, as pin.New demands
}

const _ = -(unsafe.Sizeof(caches{}) ^ (unsafe.Offsetof(caches{}.Table) + unsafe.Sizeof(caches{}.Table)))

func (c *caches) init(p *pages.Heap, s *small.Heap) {
	c.pages, c.small = p, s
	c.Table.Init(&noCache)
}

// enter holds a slot until Leave: the processor's, or the one that a test has chosen.
func (t *caches) enter() (slot int) {
	if choose := chooseSlot.Load(); choose != nil {
		return (*choose)(t)
	}
	return t.Enter()
}

// chooseSlot, if set, is called instead of Enter by slow paths. For tests.
var chooseSlot atomic.Pointer[func(t *caches) (slot int)]

// exchange loads m into the processor's cache, and returns the magazine that the cache gives up, or
// nil. If the slot has no cache, exchange returns m.
func (t *caches) exchange(class uint8, m *small.Magazine) *small.Magazine {
	slot := t.enter()
	if c := t.Entry(slot); c != &noCache {
		m = c.Exchange(class, m)
	}
	t.Leave(slot)
	return m
}

// add gives the slot a cache. It does nothing if the slot is beyond the table, if there is no
// memory, or during a drain. The heap is slow then.
func (t *caches) add(slot int) {
	t.Install(t.Slot(slot), func() *cache {
		addr, err := t.pages.AllocObject(cacheBytes)
		if err != nil {
			return nil
		}
		c := cacheAt(addr)
		c.clear()
		c.large.most, c.large.longest = mostLarge(t.pages)
		return c
	})
}

// drain returns the blocks in caches and depots to the spans. It frees the spans without a live
// block and the statuses in limbo. Scavenging is held.
func (t *caches) drain() { t.drainBy(t.Drain) }

// drainPatiently is drain for a heap at rest. Heaps whose ticks are due at the same time share a
// stop of the world.
func (t *caches) drainPatiently() { t.drainBy(t.DrainPatiently) }

func (t *caches) drainBy(drain func(match func(*cache) bool, f func([]*cache))) {
	t.counting.Lock()
	defer t.counting.Unlock()
	drain(nil, func(taken []*cache) {
		for _, c := range taken {
			t.empty(c)
		}
		t.small.Shrink()
		for _, c := range taken {
			t.pages.FreeObject(c.addr(), cacheBytes)
		}
		t.pages.FreeEmptySlabs()
	})
	t.drainedAt.Store(time.Now().UnixNano())
}

// empty gives back the blocks of a cache that is in no slot any more.
func (t *caches) empty(c *cache) {
	slot := t.enter()
	t.Leave(slot)
	t.small.Flush(&c.Cache, slot)
	for _, at := range c.large.stacks {
		t.pages.FreeRuns(at)
	}
	c.clear()
}

// exist reports whether there is a cache.
func (t *caches) exist() bool { return t.Any(nil) }

// count adds up the free small blocks in caches, by class, and the kept runs. The caches may be in
// use. counting is held, so that none is freed.
func (t *caches) count(n *[small.NumClasses]int) (large pages.LargeCount) {
	t.Each(func(c *cache) {
		c.Count(n)
		kept := c.large.count()
		large.Blocks += kept.Blocks
		large.Bytes += kept.Bytes
	})
	return large
}
