// Cache: the interface of fastcache on a cache of freehold.

// Package fastcache replaces github.com/VictoriaMetrics/fastcache by freehold's cache:
//
//	go mod edit -replace github.com/freehold-go/freehold=../freehold # a clone
//	go mod edit -replace github.com/VictoriaMetrics/fastcache=../freehold/adapters/fastcache
//	go mod tidy
//
// After the first release, the second line suffices, with the path
// github.com/freehold-go/freehold/adapters/fastcache@v0.1.0.
// Libraries cannot use the replace line, since only the main module's counts: they import this
// package instead.
//
// The program needs no other change. What differs:
//
//   - An entry that is read often stays; fastcache evicts the oldest, whether it is read or not.
//   - MaxBytes bounds the index too; fastcache has a Go map of 40 bytes an entry beside it.
//     Stats.BytesSize is the memory in use, so it grows with the entries.
//   - A value of [Cache.SetBig] is one entry, which [Cache.Get] finds too. fastcache stores pieces of
//     64 KiB, loses the value with any of them, and its Get returns 16 bytes of its own. So
//     Stats.EntriesCount and SetCalls count such a value once.
//   - A key that has the hash of another one does not replace it: Stats.Collisions is 0.
//   - A folder that one has saved cannot be loaded by the other: the Load functions return an error,
//     and [LoadFromFileOrNew] an empty cache. SaveToFile replaces the other's folder.
//   - Memory is freed: [Cache.Reset] gives it back to the system within seconds, and so does the
//     collector when it finds that nothing refers to a Cache. fastcache keeps it for later caches.
//
// Entries are in [freehold.Pages]. Package track shows the caches under the name "fastcache".
package fastcache

import (
	"fmt"
	"sync/atomic"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
)

const (
	chunkSize  = 64 << 10        // a key and a value of Set are smaller
	capacities = 512 * chunkSize // a capacity is a multiple of this
)

// A Cache keeps entries of bytes. Any number of goroutines may call its methods at the same time.
// New and the Load functions make one.
type Cache struct {
	entries *cache.Cache
	*counts
}

// counts are the figures that package cache does not count. They lie outside of the Cache: a write
// to them would slow down the readers of its first field.
type counts struct {
	skipped, setBig, getBig, tooBigKeys atomic.Uint64         // skipped: calls of Set and SetBig that stored nothing
	reset                               atomic.Pointer[Stats] // the Stats at the last Reset
}

// New returns an empty cache of maxBytes, rounded up to a multiple of 32 MiB. It panics if maxBytes
// is not positive. It takes memory only as entries are stored.
func New(maxBytes int) *Cache {
	if maxBytes <= 0 {
		panic(fmt.Errorf("fastcache.New: maxBytes must be greater than 0, and is %d", maxBytes))
	}
	return newCache(capacity(maxBytes))
}

func capacity(maxBytes int) int { return (maxBytes + capacities - 1) / capacities * capacities }

// newCache's Cache is closed by the collector when nothing refers to its entries.
func newCache(capacity int) *Cache {
	c := &Cache{cache.New(freehold.Pages(), &cache.Options{MaxBytes: capacity, Name: "fastcache", Collect: true}), new(counts)}
	c.reset.Store(new(Stats))
	return c
}

// Set stores a copy of v for k. It does nothing if key and value together have 64 KiB or more: see
// [Cache.SetBig]. Entries that are rarely read are evicted when there is no room.
func (c *Cache) Set(k, v []byte) {
	if len(k)+len(v)+4 >= chunkSize || c.entries.Set(k, v) != nil {
		c.skipped.Add(1)
	}
}

// Get appends the value of k to dst. It returns dst if there is none.
func (c *Cache) Get(dst, k []byte) []byte {
	dst, _ = c.entries.Get(dst, k)
	return dst
}

// HasGet is Get, and reports whether there is a value, which may be empty.
func (c *Cache) HasGet(dst, k []byte) ([]byte, bool) {
	return c.entries.Get(dst, k)
}

// Has reports whether k has a value. Stats count it as a Get.
func (c *Cache) Has(k []byte) bool {
	return c.entries.View(k, func(cache.Entry) {})
}

// Del deletes the value of k.
func (c *Cache) Del(k []byte) {
	c.entries.Delete(k)
}

// SetBig is Set for a value of any size up to half of the cache. It does nothing but count if k has
// 64 KiB or more.
func (c *Cache) SetBig(k, v []byte) {
	c.setBig.Add(1)
	if len(k)+4 >= chunkSize {
		c.tooBigKeys.Add(1)
		c.skipped.Add(1)
	} else if c.entries.Set(k, v) != nil {
		c.skipped.Add(1)
	}
}

// GetBig is Get, and counts in Stats.GetBigCalls too.
func (c *Cache) GetBig(dst, k []byte) []byte {
	c.getBig.Add(1)
	return c.Get(dst, k)
}

// Reset deletes all entries and begins the figures of [Cache.UpdateStats] anew. The cache may be
// used while and after it is reset.
func (c *Cache) Reset() {
	c.entries.Clear()
	c.beginFigures()
}
