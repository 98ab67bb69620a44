// Cache: one processor's free blocks.
//
// A cache has magazines of small blocks, by package small, and kept runs of large ones: see
// largecache.go. Its slot is in Heap.caches. The holder of the slot has the cache to itself: see
// package pin. Caches are off-heap.

package heap

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/vm"
	"github.com/freehold-go/freehold/internal/watch"
)

type cache struct {
	small.Cache
	left  int64 // bytes until the countdown to the next watched block ends
	large largeCache
}

const cacheBytes = unsafe.Sizeof(cache{})

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

// block returns the size bytes at addr, cleared or as they are.
func block(addr uintptr, size int, cleared bool) []byte {
	b := unsafe.Slice((*byte)(vm.Pointer(addr)), size)
	if cleared {
		clear(b)
	}
	return b
}
