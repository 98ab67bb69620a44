// Caches: the processors' free blocks.
//
// A cache has magazines of small blocks, by package small, and kept runs of large ones: see
// largecache.go. It is off-heap, in the slot of its processor, and the slot's holder has it to
// itself: see package pin.
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
	"github.com/freehold-go/freehold/internal/vm"
	"github.com/freehold-go/freehold/internal/watch"
)

type cache struct {
	small.Cache
	left  int64 // bytes until the countdown to the next watched block ends
	large largeCache
}

const (
	cacheBytes = unsafe.Sizeof(cache{})
	_          = -unsafe.Offsetof(cache{}.Cache) // the assembly relies on it
)

// noCache is the entry of a slot without a cache. It has no block and no room, so the fast paths
// need no test for it, and it is never written.
var noCache cache

func init() { noCache.clear() }

func (c *cache) clear() {
	c.Cache.Clear()
	c.left = watch.Gap()
	c.large = largeCache{}
}

func cacheAt(addr uintptr) *cache { return (*cache)(vm.Pointer(addr)) }
func (c *cache) addr() uintptr    { return uintptr(unsafe.Pointer(c)) }

// after returns the countdown after a block of size bytes. It is below 0 if the countdown ends with
// this block.
func (c *cache) after(size int) int64 {
	left := c.left
	if watch.Counting() {
		left -= int64(size) + watch.Countdown.Extra.Load()
	}
	return left
}

// due counts down by a block of size bytes that c has just served. It reports whether the countdown
// ended, so that the block may be watched.
func (c *cache) due(size int) bool {
	if left := c.after(size); left >= 0 {
		c.left = left
		return false
	}
	c.left = watch.Gap()
	return true
}

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

// block returns the size bytes at addr, cleared or as they are.
func block(addr uintptr, size int, cleared bool) []byte {
	b := unsafe.Slice((*byte)(vm.Pointer(addr)), size)
	if cleared {
		clear(b)
	}
	return b
}
