package simulate

import (
	"encoding/binary"

	"github.com/Yiling-J/theine-go"
	"github.com/coocood/freecache"
	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/maypok86/otter/v2"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
)

const keyBytes = 24 // of each key

// A simulated is a cache that answers requests. It holds sizes, or values of those sizes.
type simulated struct {
	get   func(key uint64) bool
	set   func(key uint64, size uint32)
	close func()
}

// A policy makes a cache with a bound of the keys' and values' bytes. freehold's and freecache's
// bounds include all else that they take.
type policy struct {
	name string
	make func(maxBytes int) simulated
}

var policies = []policy{
	{"freehold", func(maxBytes int) simulated { return freeholdCache(maxBytes, cache.Options{}) }},
	{"otter", func(maxBytes int) simulated {
		c := otter.Must(&otter.Options[uint64, uint32]{
			MaximumWeight: uint64(maxBytes),
			Weigher:       func(_ uint64, size uint32) uint32 { return keyBytes + size },
			Executor:      func(f func()) { f() }, // it hits less if goroutines evict
		})
		return simulated{
			get:   func(key uint64) bool { _, ok := c.GetIfPresent(key); return ok },
			set:   func(key uint64, size uint32) { c.Set(key, size) },
			close: func() { c.InvalidateAll(); c.StopAllGoroutines() },
		}
	}},
	{"theine", func(maxBytes int) simulated {
		c, err := theine.NewBuilder[uint64, uint32](int64(maxBytes)).Build()
		if err != nil {
			panic(err)
		}
		return simulated{
			get:   func(key uint64) bool { _, ok := c.Get(key); return ok },
			set:   func(key uint64, size uint32) { c.Set(key, size, keyBytes+int64(size)); c.Wait() },
			close: c.Close,
		}
	}},
	{"freecache", func(maxBytes int) simulated {
		c := freecache.NewCache(maxBytes)
		var k [keyBytes]byte
		var value []byte
		return simulated{
			get: func(key uint64) bool { return c.GetFn(keyOf(&k, key), func([]byte) error { return nil }) == nil },
			set: func(key uint64, size uint32) {
				value = grown(value, size)
				c.Set(keyOf(&k, key), value, 0)
			},
			close: func() {},
		}
	}},
	{"LRU", func(maxBytes int) simulated {
		used := 0
		c, err := simplelru.NewLRU(maxBytes, func(_ uint64, size uint32) { used -= keyBytes + int(size) })
		if err != nil {
			panic(err)
		}
		return simulated{
			get: func(key uint64) bool { _, ok := c.Get(key); return ok },
			set: func(key uint64, size uint32) {
				if keyBytes+int(size) > maxBytes {
					return
				}
				c.Add(key, size)
				for used += keyBytes + int(size); used > maxBytes; {
					c.RemoveOldest()
				}
			},
			close: func() {},
		}
	}},
}

func freeholdCache(maxBytes int, o cache.Options) simulated {
	parent := freehold.NewHeap(nil)
	o.MaxBytes = maxBytes
	c := cache.New(parent, &o)
	var k [keyBytes]byte
	var value []byte
	return simulated{
		get: func(key uint64) bool { return c.View(keyOf(&k, key), func(cache.Entry) {}) },
		set: func(key uint64, size uint32) {
			value = grown(value, size)
			c.Set(keyOf(&k, key), value)
		},
		close: func() { c.Close(); parent.Close() },
	}
}

func keyOf(room *[keyBytes]byte, key uint64) []byte {
	binary.LittleEndian.PutUint64(room[:], key)
	return room[:]
}

// grown returns a value of size bytes.
func grown(value []byte, size uint32) []byte {
	if cap(value) < int(size) {
		return make([]byte, size)
	}
	return value[:size]
}
