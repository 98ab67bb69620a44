// Caches: the free blocks that each processor keeps.
//
// A cache consists of a processor's magazines, kept runs and countdown. It is off-heap, and the
// processor's slot points to it. Only the goroutine that holds the slot uses the cache: see package
// pin.
//
// # Draining
//
// A drain returns the blocks in the caches to the spans. pin.Table.Drain takes the caches out of
// their slots. table.go of package pin proves that no goroutine uses a cache that was taken. After
// that each free block is in a taken cache, in a depot or in a span. None is on its way between two
// of these: a goroutine that moves a magazine holds a depot's lock, and it holds the slot while it
// touches the cache. Drain waits for the slot, and small.Heap.Shrink waits for the lock.
//
// A small heap that grows need not drain. Each processor flushes its own cache, so none waits for
// another: see ask. counting is held meanwhile, so no drain, count or Close misses the blocks.

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
	small.Magazines
	left  int64 // bytes until the countdown to the next watched block ends
	runs  keptRuns
	since uint32 // caches.asked when it was made; another number in noCache
}

const (
	cacheBytes = unsafe.Sizeof(cache{})
	_          = -unsafe.Offsetof(cache{}.Magazines) // offset 0: the assembly relies on it
)

// noCache is the value of a slot without a cache. It has no block and no room, so the fast paths
// need no test for it. It is never written after init.
var noCache cache

func init() {
	noCache.clear()
	noCache.since--
}

func (c *cache) clear() {
	c.Magazines.Clear()
	c.left = watch.Gap()
	c.runs = keptRuns{}
}

func cacheAt(addr uintptr) *cache { return (*cache)(vm.Pointer(addr)) }
func (c *cache) addr() uintptr    { return uintptr(unsafe.Pointer(c)) }

// after returns the countdown that a block of size bytes leaves. A result below 0 means that the
// countdown ends with this block.
func (c *cache) after(size int) int64 {
	left := c.left
	if watch.Counting() {
		left -= int64(size) + watch.Countdown.Extra.Load()
	}
	return left
}

// due counts down for a block of size bytes from c. It reports whether the countdown ended with it:
// then package watch may watch the block, and a new countdown begins.
func (c *cache) due(size int) bool {
	if left := c.after(size); left >= 0 {
		c.left = left
		return false
	}
	c.left = watch.Gap()
	return true
}

// caches has the slots of a heap, one for each processor. A slot has a cache or noCache.
type caches struct {
	pages     *pages.Heap
	small     *small.Heap
	asked     atomic.Uint32                     // requests to flush: see ask
	drainedAt atomic.Int64                      // time of the last drain, in nanoseconds of Unix time
	counting  lockrank.Mutex[lockrank.Counting] // held during a drain, and while blocks are counted

	pin.Table[cache] // last, as pin.New demands
}

const _ = -(unsafe.Sizeof(caches{}) ^ (unsafe.Offsetof(caches{}.Table) + unsafe.Sizeof(caches{}.Table)))

func (t *caches) init(p *pages.Heap, s *small.Heap) {
	t.pages, t.small = p, s
	t.Table.Init(&noCache)
}

// enter takes hold of the processor's slot, or of the slot that a test has chosen, until Leave.
func (t *caches) enter() (slot int) {
	if choose := chooseSlot.Load(); choose != nil {
		return (*choose)(t)
	}
	return t.Enter()
}

// chooseSlot, if set, is called instead of Enter by slow paths. For tests.
var chooseSlot atomic.Pointer[func(t *caches) (slot int)]

// Hold is enter for the exchange of package small.
func (t *caches) Hold() (slot int, c *small.Magazines) {
	slot = t.enter()
	if e := t.Value(slot); e != &noCache {
		c = &e.Magazines
	}
	return slot, c
}

// add gives the slot a cache. It is a no-op if the slot is beyond the table, if there is no memory,
// or during a drain. Calls on that slot then take the slow paths.
func (t *caches) add(slot int) {
	t.Install(t.Slot(slot), func() *cache {
		addr, err := t.pages.AllocObject(cacheBytes)
		if err != nil {
			return nil
		}
		c := cacheAt(addr)
		c.clear()
		c.runs.mostHeld, c.runs.longest = mostKept(t.pages)
		c.since = t.asked.Load()
		return c
	})
}

// drain returns the blocks in caches and depots to the spans. It frees the spans without a live
// block and the statuses in limbo. Scavenging is held.
func (t *caches) drain() { t.drainBy(t.Drain) }

// drainPatiently is drain, but may wait. Heaps that drain patiently at the same time share one stop
// of the world.
func (t *caches) drainPatiently() { t.drainBy(t.DrainPatiently) }

// ask flushes the caller's cache and the depots, and asks each other processor to flush its cache
// in its next slow call. It reports whether there is such a cache. Unlike drain it stops no
// processor, and limbo stays.
func (t *caches) ask() (others bool) {
	t.counting.Lock()
	defer t.counting.Unlock()
	t.asked.Add(1)
	t.flushOwn()
	t.small.ShrinkDepots()
	return t.Any(t.isStale)
}

// drainIdle drains if a processor has not flushed its cache since ask.
func (t *caches) drainIdle() {
	t.counting.Lock()
	stale := t.Any(t.isStale)
	t.counting.Unlock()
	if stale {
		t.drain()
	}
}

// isStale reports whether a slow call should renew c: it is noCache, or ask came after it was made.
func (t *caches) isStale(c *cache) bool { return c.since != t.asked.Load() }

// renew replaces a stale cache in a slot, which the caller has left. The cache stays if another
// goroutine drains or counts, so that renew does not wait. A later slow call then renews it.
func (t *caches) renew(slot int) {
	if t.counting.TryLock() {
		t.flushOwn()
		t.counting.Unlock()
	}
	t.add(slot)
}

// flushOwn returns the blocks in the cache of the caller's processor to the spans, and frees the
// cache, if it is stale. It may not be: the caller of renew may have come to another processor. Only
// the holder of a slot uses its cache, so flushOwn waits for no other processor. counting is held.
func (t *caches) flushOwn() {
	c := &noCache
	slot := t.enter()
	if t.isStale(t.Value(slot)) {
		c = t.Take(slot)
	}
	t.Leave(slot)
	if c != &noCache {
		t.flush(c)
		t.pages.FreeObject(c.addr(), cacheBytes)
	}
}

// forget takes all caches away from a closed heap. The page heap then frees their memory.
func (t *caches) forget() {
	t.counting.Lock() // waits for flushOwn
	defer t.counting.Unlock()
	t.Clear()
}

func (t *caches) drainBy(drain func(match func(*cache) bool, f func([]*cache))) {
	t.counting.Lock()
	defer t.counting.Unlock()
	drain(nil, func(taken []*cache) {
		for _, c := range taken {
			t.flush(c)
		}
		t.small.Shrink()
		for _, c := range taken {
			t.pages.FreeObject(c.addr(), cacheBytes)
		}
		t.pages.FreeEmptySlabs()
	})
	t.drainedAt.Store(time.Now().UnixNano())
}

// flush returns the blocks of a cache that was taken from its slot to the spans, and its kept runs
// to the page heap.
func (t *caches) flush(c *cache) {
	t.small.Flush(&c.Magazines)
	for _, at := range c.runs.stacks {
		t.pages.FreeRuns(at)
	}
	c.clear()
}

// exist reports whether any slot has a cache.
func (t *caches) exist() bool { return t.Any(nil) }

// count adds the free small blocks in caches to n, by class, and returns the kept runs. Other
// goroutines may use the caches meanwhile. counting is held, so no cache is freed.
func (t *caches) count(n *[small.NumClasses]int) (large pages.LargeCount) {
	t.Each(func(c *cache) {
		c.Count(n)
		kept := c.runs.count()
		large.Blocks += kept.Blocks
		large.Bytes += kept.Bytes
	})
	return large
}

// block returns the size bytes at addr as a slice. If cleared is set, it clears them.
func block(addr uintptr, size int, cleared bool) []byte {
	b := unsafe.Slice((*byte)(vm.Pointer(addr)), size)
	if cleared {
		clear(b)
	}
	return b
}
