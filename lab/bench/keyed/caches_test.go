package keyed

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/VictoriaMetrics/fastcache"
	"github.com/allegro/bigcache/v3"
	"github.com/coocood/freecache"
	"github.com/maypok86/otter/v2"

	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/lab/bench/measure"
	"github.com/freehold-go/freehold/lab/process"
)

// A cacheOf has the calls that are benchmarked. A call that a peer does not have is nil.
type cacheOf struct {
	get      func(room, key []byte) ([]byte, bool)
	set      func(key, value []byte)
	getMany  func(keys [][]byte) (found int)
	prefetch func(keys [][]byte)
	close    func()
}

// caches are told the same bound in bytes. Their memory beyond that differs.
var caches = []struct {
	name string
	make func(maxBytes, entries int) cacheOf
}{
	{"freehold", freeholdCache},
	{"freecache", func(maxBytes, _ int) cacheOf {
		c := freecache.NewCache(maxBytes)
		return cacheOf{
			get: func(room, key []byte) ([]byte, bool) {
				n := 0
				err := c.GetFn(key, func(v []byte) error { n = copy(room[:cap(room)], v); return nil })
				return room[:n], err == nil
			},
			set:   func(key, value []byte) { c.Set(key, value, 0) },
			close: func() {},
		}
	}},
	{"fastcache", func(maxBytes, _ int) cacheOf {
		c := fastcache.New(maxBytes)
		return cacheOf{get: c.HasGet, set: c.Set, close: c.Reset}
	}},
	{"bigcache", func(maxBytes, entries int) cacheOf {
		o := bigcache.DefaultConfig(time.Hour)
		o.CleanWindow, o.HardMaxCacheSize, o.Verbose = 0, maxBytes>>20, false
		o.MaxEntriesInWindow, o.MaxEntrySize = entries, maxBytes/entries
		c, err := bigcache.New(context.Background(), o)
		must(err)
		return cacheOf{
			get: func(room, key []byte) ([]byte, bool) {
				v, err := c.Get(unsafe.String(unsafe.SliceData(key), len(key)))
				return v, err == nil
			},
			set:   func(key, value []byte) { c.Set(string(key), value) },
			close: func() { c.Close() },
		}
	}},
	{"otter", func(maxBytes, _ int) cacheOf {
		c := otter.Must(&otter.Options[string, []byte]{
			MaximumWeight: uint64(maxBytes),
			Weigher:       func(k string, v []byte) uint32 { return uint32(len(k) + len(v)) },
		})
		return cacheOf{
			get: func(room, key []byte) ([]byte, bool) {
				v, ok := c.GetIfPresent(unsafe.String(unsafe.SliceData(key), len(key)))
				return append(room, v...), ok
			},
			set:   func(key, value []byte) { c.Set(string(key), append([]byte(nil), value...)) },
			close: func() { c.InvalidateAll(); c.StopAllGoroutines() },
		}
	}},
}

func freeholdCache(maxBytes, _ int) cacheOf {
	parent := heap(true)
	c := cache.New(parent, &cache.Options{MaxBytes: maxBytes})
	return cacheOf{
		get: c.Get,
		set: func(key, value []byte) { must(c.Set(key, value)) },
		getMany: func(keys [][]byte) (found int) {
			c.GetMany(keys, func(int, cache.Entry) { found++ })
			return found
		},
		prefetch: c.Prefetch,
		close:    func() { c.Close(); parent.Close() },
	}
}

const (
	cacheKeyBytes   = 24
	leastValueBytes = 100
	mostValueBytes  = 1000
)

// cacheKey writes key i.
func cacheKey(room *[cacheKeyBytes]byte, i uint64) []byte {
	k := keyOf(i)
	binary.LittleEndian.PutUint64(room[:], k)
	binary.LittleEndian.PutUint64(room[8:], i)
	binary.LittleEndian.PutUint64(room[16:], ^k)
	return room[:]
}

var cacheValue [mostValueBytes]byte

// cacheValueOf returns the value of key i, if they have 100 to most bytes.
func cacheValueOf(i uint64, most int) []byte {
	return cacheValue[:leastValueBytes+int(keyOf(i)%uint64(most-leastValueBytes+1))]
}

// A cacheLoad is entries with values of 100 to most bytes.
type cacheLoad struct{ entries, most int }

func (l cacheLoad) bytes() int {
	return l.entries * (cacheKeyBytes + (leastValueBytes+l.most)/2)
}

// filled returns a cache with room for all, times share, that was filled in order.
func (l cacheLoad) filled(b *testing.B, make func(int, int) cacheOf, share float64) cacheOf {
	c := make(int(float64(l.bytes()+80*l.entries)*share), l.entries)
	l.fill(c)
	b.Cleanup(c.close)
	return c
}

func (l cacheLoad) fill(c cacheOf) {
	var room [cacheKeyBytes]byte
	for i := range uint64(l.entries) {
		c.set(cacheKey(&room, i), cacheValueOf(i, l.most))
	}
}

// zipfKeys returns numbers below n. A few of them are frequent.
func zipfKeys(n, seed int) []uint32 {
	r := rand.New(rand.NewPCG(uint64(seed), 5))
	z := rand.NewZipf(r, 1.01, 1, uint64(n-1))
	keys := make([]uint32, 1<<20)
	for i := range keys {
		keys[i] = uint32(keyOf(z.Uint64()) % uint64(n))
	}
	return keys
}

// BenchmarkCaches has the loads of caches: with room for all, 1.3 times what keys and values take,
// and with room for half.
func BenchmarkCaches(b *testing.B) {
	entries := measure.Size().Entries / 10
	for _, load := range []struct {
		name string
		cacheLoad
	}{{"values=100-1000", cacheLoad{entries, mostValueBytes}}, {"values=100", cacheLoad{10 * entries, leastValueBytes}}} {
		b.Run(load.name, func(b *testing.B) {
			for _, op := range []struct {
				name  string
				share float64 // of the room for all
				do    func(b *testing.B, c cacheOf)
			}{
				{"get", 1.3, func(b *testing.B, c cacheOf) { load.get(b, c, 1) }},
				{"get/goroutines=2", 1.3, func(b *testing.B, c cacheOf) { load.get(b, c, 2) }},
				{"get-many", 1.3, load.many},
				{"mixed", 1.3, func(b *testing.B, c cacheOf) { load.mixed(b, c, 1) }},
				{"mixed/goroutines=2", 1.3, func(b *testing.B, c cacheOf) { load.mixed(b, c, 2) }},
				{"set", 1.3, func(b *testing.B, c cacheOf) { load.set(b, c, func(i, _ uint64) uint64 { return i }) }},
				{"set-many", 1.3, load.setMany},
				{"set-any-size", 1.3, func(b *testing.B, c cacheOf) { load.set(b, c, func(_, x uint64) uint64 { return x }) }},
				{"evict", 0.5, load.evict},
			} {
				for _, p := range caches {
					measure.Run(b, "op="+op.name, p.name, func(b *testing.B) {
						op.do(b, load.filled(b, p.make, op.share))
					})
				}
			}
			for _, p := range caches {
				measure.Run(b, "op=fill", p.name, func(b *testing.B) {
					must(process.Back(load.bytes() * 3 / 2))
					measure.Once(b, load.entries, func() { load.filled(b, p.make, 1.3) })
				})
				measure.Run(b, "op=held", p.name, func(b *testing.B) { load.held(b, p.make) })
			}
		})
	}
}

// held fills a cache with four times as much as it has room for, and measures the peak of resident
// memory as a part of the bound.
func (l cacheLoad) held(b *testing.B, make func(int, int) cacheOf) {
	runtime.GC()
	before, err := process.ResetPeak()
	if err != nil {
		b.Skip(err)
	}
	bound := l.bytes() / 4
	c := make(bound, l.entries/4)
	defer c.close()
	l.fill(c)
	peak, err := process.Peak()
	must(err)
	b.ReportMetric(float64(peak-before)/float64(bound), "resident-B/B")
	b.ReportMetric(0, "ns/op")
}

func (l cacheLoad) get(b *testing.B, c cacheOf, goroutines int) {
	measure.Loops(b, goroutines, 1, func(goroutine int) measure.Loop {
		rnd := measure.Seed(goroutine)
		var room [cacheKeyBytes]byte
		value := make([]byte, 0, mostValueBytes)
		return func(n int) (sum uint64) {
			for range n {
				if _, ok := c.get(value, cacheKey(&room, measure.Below(rnd.Next(), uint64(l.entries)))); ok {
					sum++
				}
			}
			return sum
		}
	})
}

// mixed sets in one of ten operations, and gets frequent keys in the others.
func (l cacheLoad) mixed(b *testing.B, c cacheOf, goroutines int) {
	measure.Loops(b, goroutines, 1, func(goroutine int) measure.Loop {
		keys, at := zipfKeys(l.entries, goroutine), 0
		var room [cacheKeyBytes]byte
		value := make([]byte, 0, mostValueBytes)
		return func(n int) (sum uint64) {
			for range n {
				i := uint64(keys[at%len(keys)])
				if key := cacheKey(&room, i); at%10 == 0 {
					c.set(key, cacheValueOf(i, l.most))
				} else if _, ok := c.get(value, key); ok {
					sum++
				}
				at++
			}
			return sum
		}
	})
}

// set replaces the value of a key by the value of another one. like chooses that key, from the
// first one and a random number. All were replaced once before, so that the cache is as it stays.
func (l cacheLoad) set(b *testing.B, c cacheOf, like func(i, x uint64) uint64) {
	rnd := measure.Seed(0)
	var room [cacheKeyBytes]byte
	loop := func(n int) uint64 {
		for range n {
			x := rnd.Next()
			i := measure.Below(x, uint64(l.entries))
			c.set(cacheKey(&room, i), cacheValueOf(like(i, x), l.most))
		}
		return 0
	}
	loop(l.entries)
	measure.Loops(b, 1, 1, func(int) measure.Loop { return loop })
}

// setMany is set of 16 keys at once, by values of the old sizes. It prefetches the keys if the peer
// can.
func (l cacheLoad) setMany(b *testing.B, c cacheOf) {
	const batch = 16
	rnd := measure.Seed(0)
	var room [batch][cacheKeyBytes]byte
	var numbers [batch]uint64
	keys := make([][]byte, batch)
	loop := func(n int) uint64 {
		for range n {
			for j := range keys {
				numbers[j] = measure.Below(rnd.Next(), uint64(l.entries))
				keys[j] = cacheKey(&room[j], numbers[j])
			}
			if c.prefetch != nil {
				c.prefetch(keys)
			}
			for j, key := range keys {
				c.set(key, cacheValueOf(numbers[j], l.most))
			}
		}
		return 0
	}
	loop(l.entries / batch)
	measure.Loops(b, 1, batch, func(int) measure.Loop { return loop })
}

// evict sets new keys in a cache that is full.
func (l cacheLoad) evict(b *testing.B, c cacheOf) {
	measure.Loops(b, 1, 1, func(int) measure.Loop {
		next := uint64(math.MaxUint32)
		var room [cacheKeyBytes]byte
		return func(n int) uint64 {
			for range n {
				next++
				c.set(cacheKey(&room, next), cacheValueOf(next, l.most))
			}
			return 0
		}
	})
}

// many gets 16 keys at once, or one by one where the peer knows only that.
func (l cacheLoad) many(b *testing.B, c cacheOf) {
	const batch = 16
	measure.Loops(b, 1, batch, func(int) measure.Loop {
		rnd := measure.Seed(0)
		var room [batch][cacheKeyBytes]byte
		keys := make([][]byte, batch)
		value := make([]byte, 0, mostValueBytes)
		return func(n int) (sum uint64) {
			for range n {
				for i := range keys {
					keys[i] = cacheKey(&room[i], measure.Below(rnd.Next(), uint64(l.entries)))
				}
				if c.getMany != nil {
					sum += uint64(c.getMany(keys))
					continue
				}
				for _, key := range keys {
					if _, ok := c.get(value, key); ok {
						sum++
					}
				}
			}
			return sum
		}
	})
}
