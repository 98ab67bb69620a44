// Cache: the interface of fastcache on a cache of freehold.

// Package fastcache replaces github.com/VictoriaMetrics/fastcache by freehold's cache:
//
//	go mod edit -replace github.com/freehold-go/freehold=../freehold # a clone
//	go mod edit -replace github.com/VictoriaMetrics/fastcache=../freehold/adapters/fastcache
//	go mod tidy
//
// After the first release, the second line suffices, with the path
// github.com/freehold-go/freehold/adapters/fastcache@v0.1.0.
//
// Libraries import this package instead, since only the main module's replace lines count.
//
// The program needs no other change. What differs:
//
//   - An entry that is read often stays; fastcache evicts the oldest, whether it is read or not.
//   - maxBytes bounds the index too. fastcache takes 40 bytes an entry beyond it, for a Go map.
//     Stats.BytesSize is the memory in use, so it grows with the entries.
//   - A value of [Cache.SetBig] is one entry, which [Cache.Get] finds too. Stats.EntriesCount and
//     SetCalls count it once. fastcache stores pieces of 64 KiB, and loses the value with any of
//     them. Its Get returns 16 bytes of its own.
//   - A key does not replace another one with the same hash: Stats.Collisions is 0.
//   - Neither can load a folder that the other saved: the Load functions return an error, and
//     [LoadFromFileOrNew] an empty cache. SaveToFile replaces the other's folder.
//   - Memory is freed: [Cache.Reset] returns it to the system within seconds, and so does the
//     collector when nothing refers to a Cache. fastcache keeps it for later caches.
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
	chunkSize  = 64 << 10        // a key and a value of Set are smaller together
	capacities = 512 * chunkSize // a capacity is a multiple of this
)

// A Cache keeps entries of bytes. Any number of goroutines may call its methods at the same time.
// New and the Load functions make one.
type Cache struct {
	entries *cache.Cache
	*counts
}

// counts are the figures that package cache does not count. They are outside of the Cache: a write
// to them would slow down reads of its first field, in the same cache line.
type counts struct {
	skipped, setBig, getBig, tooBigKeys atomic.Uint64         // skipped: calls of Set and SetBig that stored nothing
	reset                               atomic.Pointer[Stats] // total at the last beginFigures
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

// newCache returns a Cache whose entries the collector closes when nothing refers to them.
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

// SetBig is Set for a value of any size up to half of the cache. It only counts the call if k has 64
// KiB or more.
func (c *Cache) SetBig(k, v []byte) {
	c.setBig.Add(1)
	if len(k)+4 >= chunkSize {
		c.tooBigKeys.Add(1)
		c.skipped.Add(1)
	} else if c.entries.Set(k, v) != nil {
		c.skipped.Add(1)
	}
}

// GetBig is Get, and also counts in Stats.GetBigCalls.
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
