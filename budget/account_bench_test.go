// What accounts cost: a pair, a charge, a cache at its limit, and the time to the first
// callback.

package budget

import (
	"container/list"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget/internal/pressure"
)

// deep returns an account with two above it, which all have limits.
func deep(b *testing.B) *Account {
	top := newAccount(b, nil, "process", 1<<30)
	return newAccount(b, newAccount(b, top, "subsystem", 1<<30), "tenant", 1<<30)
}

// BenchmarkAccountPair is Alloc, a touch, and Free in an account three deep, beside a heap.
func BenchmarkAccountPair(b *testing.B) {
	for _, size := range []int{64, 1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("account/size=%d", size), func(b *testing.B) {
			a := deep(b)
			for b.Loop() {
				p, _ := a.Alloc(size, 8)
				p[0] = 1
				a.Free(p)
			}
		})
		b.Run(fmt.Sprintf("heap/size=%d", size), func(b *testing.B) {
			h := freehold.NewHeap(nil)
			defer h.Close()
			for b.Loop() {
				p, _ := h.Alloc(size, 8)
				p[0] = 1
				h.Free(p)
			}
		})
	}
}

// BenchmarkCharge is a charge and a refund three deep, which is once for fresh pages.
func BenchmarkCharge(b *testing.B) {
	p := payer{deep(b)}
	for b.Loop() {
		p.Charge(8 << 10)
		p.Refund(8 << 10)
	}
}

// BenchmarkFresh is an Alloc of a MiB of fresh pages, a touch of each, Free and Trim, beside
// a heap: nothing is reused.
func BenchmarkFresh(b *testing.B) {
	run := func(b *testing.B, a freehold.Allocator, trim func()) {
		for b.Loop() {
			p, _ := a.Alloc(1<<20, 8)
			for i := 0; i < len(p); i += 4096 {
				p[i] = 1
			}
			a.Free(p)
			trim()
		}
	}
	b.Run("account", func(b *testing.B) { a := deep(b); run(b, a, a.h.Trim) })
	b.Run("heap", func(b *testing.B) {
		h := freehold.NewHeap(nil)
		defer h.Close()
		run(b, h, h.Trim)
	})
}

// BenchmarkReaction is the time from the Alloc that crosses a soft limit until the callback
// runs.
func BenchmarkReaction(b *testing.B) {
	a := newAccount(b, deep(b), "a", 0)
	a.SetLimits(32<<20, 0)
	began := make(chan time.Time, 1)
	a.OnPressure(0, func(_ context.Context, p Pressure) {
		if p.Level > Calm {
			began <- time.Now()
		}
	})
	base := mustAlloc(b, a, 24<<20)
	defer a.Free(base)
	var sum, most time.Duration
	n := 0
	for b.Loop() {
		start := time.Now()
		p := mustAlloc(b, a, 16<<20)
		took := (<-began).Sub(start)
		sum, most, n = sum+took, max(most, took), n+1
		a.Free(p)
		for told := Soft; told > Calm; {
			a.Trim()
			a.node.Locked(func(pressure.State) { told = a.reported.level })
		}
	}
	b.ReportMetric(float64(sum.Microseconds())/float64(n), "us/reaction")
	b.ReportMetric(float64(most.Microseconds()), "us/longest")
}

// BenchmarkCacheAtItsLimit puts values into a full LRU of 64 MiB: by AllocOrEvict in an account of
// 64 MiB, the third of a tree, and in a heap, where the LRU adds up the bytes of its values. Eight
// goroutines share one LRU, or have a shard each.
func BenchmarkCacheAtItsLimit(b *testing.B) {
	for _, sizes := range []struct{ from, to int }{{256, 256}, {16, 1024}} {
		for _, users := range []struct{ goroutines, shards int }{{1, 1}, {8, 1}, {8, 8}} {
			for _, evict := range []bool{true, false} {
				b.Run(fmt.Sprintf("size=%d-%d/goroutines=%d/shards=%d/evict=%t", sizes.from, sizes.to, users.goroutines, users.shards, evict), func(b *testing.B) {
					c := newLRU(b, users.shards, evict)
					c.puts(users.goroutines, cacheLimit/sizes.from*2, sizes.from, sizes.to)
					b.ResetTimer()
					c.puts(users.goroutines, b.N, sizes.from, sizes.to)
				})
			}
		}
	}
}

const cacheLimit = 64 << 20

// lru is a cache in shards.
type lru []*shard

func newLRU(b testing.TB, shards int, evict bool) (c lru) {
	h := freehold.NewHeap(nil)
	b.Cleanup(h.Close)
	c = make(lru, shards)
	for i := range c {
		c[i] = &shard{all: c, entries: map[uint32]*list.Element{}, blocks: h, max: cacheLimit / shards}
	}
	if evict {
		a := newAccount(b, newAccount(b, newAccount(b, nil, "process", 0), "cache", 0), "lru", cacheLimit)
		for _, s := range c {
			s.account, s.blocks = a, a
		}
	}
	return c
}

// puts has goroutines put n values of random sizes.
func (c lru) puts(goroutines, n, from, to int) {
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(rand.Uint64(), 1))
			for range n/goroutines + 1 {
				x := r.Uint32()
				c[g%len(c)].put(x, from+int(x%uint32(to-from+1)))
			}
		})
	}
	wg.Wait()
}

// shard is a part of a cache, as Go programs have it: a map and a list.
type shard struct {
	all     lru
	mu      sync.Mutex
	entries map[uint32]*list.Element
	order   list.List // the oldest first
	account *Account  // nil if the size is counted
	blocks  freehold.Allocator
	size    int
	max     int
}

type entry struct {
	key   uint32
	value []byte
}

// evictAny frees the oldest values of a larger shard that is not locked, or else its own. mu is
// held.
func (c *shard) evictAny(bytes int) (freed int) {
	for _, other := range c.all {
		if other != c && other.mu.TryLock() {
			if other.size > c.size {
				freed += other.evict(bytes)
			}
			other.mu.Unlock()
			if freed >= bytes {
				return freed
			}
		}
	}
	return freed + c.evict(bytes-freed)
}

// evict frees the oldest values. mu is held.
func (c *shard) evict(bytes int) (freed int) {
	for freed < bytes && c.order.Len() > 0 {
		e := c.order.Remove(c.order.Front()).(entry)
		delete(c.entries, e.key)
		c.blocks.Free(e.value)
		freed += len(e.value)
	}
	c.size -= freed
	return freed
}

func (c *shard) put(key uint32, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.entries[key]; ok {
		c.order.MoveToBack(at)
		return
	}
	value, err := c.alloc(size)
	if err != nil {
		panic(err)
	}
	for i := 0; i < len(value); i += 64 {
		value[i] = byte(key)
	}
	c.size += size
	c.entries[key] = c.order.PushBack(entry{key, value})
}

func (c *shard) alloc(size int) ([]byte, error) {
	if c.account != nil {
		return c.account.AllocOrEvict(size, 8, c.evictAny)
	}
	if c.size+size > c.max {
		c.evict(c.size + size - c.max)
	}
	return c.blocks.Alloc(size, 8)
}
