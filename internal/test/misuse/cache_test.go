package misuse

import (
	"bytes"
	"errors"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
)

const lentBytes = 1000

var (
	cacheKey   = []byte("key")
	cacheValue = bytes.Repeat([]byte{1}, lentBytes)

	keptRead  = caught{guard: guarded("use after free"), asan: sanitized}
	keptWrite = caught{guard: guarded("use after free"), poison: panics("was written after its Free\n\tallocated through cache.(*Cache)."), asan: sanitized}.andInTests(reports("a write after Free"))
)

// lentWrite is the detection of a write to memory that a call lends to a function.
func lentWrite(call string) caught {
	h := panics(call + ": the function has written to byte 0 of ")
	return caught{guard: h, poison: h, asan: h}.andInTests(h)
}

// inCache runs a program in a cache with cacheValue, which it closes afterwards.
func inCache(f func(w *world, c *cache.Cache)) func(w *world) {
	return withCache(cache.Options{}, f)
}

func withCache(o cache.Options, f func(w *world, c *cache.Cache)) func(w *world) {
	return func(w *world) {
		o.MaxBytes = cache.MinBytes
		c := cache.New(w.a, &o)
		defer c.Close()
		freehold.Must(0, c.Set(cacheKey, cacheValue))
		f(w, c)
	}
}

// makes returns a program that calls a constructor.
func makes(o *cache.Options) func(w *world) {
	return func(w *world) { cache.New(w.a, o).Close() }
}

// viewMany calls View until the heap's quarantine has replaced its blocks.
func viewMany(c *cache.Cache) {
	for range 4 << 20 / lentBytes {
		c.View(cacheKey, func(cache.Entry) {})
	}
}

// evicting runs a program with a cache whose OnEvict is f. The program makes the cache evict.
func evicting(f func(w *world, key []byte, e cache.Entry), end func(w *world)) func(w *world) {
	return func(w *world) {
		c := cache.New(w.a, &cache.Options{MaxBytes: cache.MinBytes, OnEvict: func(key []byte, e cache.Entry, _ cache.Reason) { f(w, key, e) }})
		defer c.Close()
		for i := 0; c.Stats().Evicted == 0; i++ {
			freehold.Must(0, c.Set([]byte{byte(i), byte(i >> 8)}, cacheValue))
		}
		end(w)
	}
}

var evictKept []byte

// decoding runs a program with a typed cache that decodes its values with f.
func decoding(f func(w *world, b []byte), end func(w *world)) func(w *world) {
	return func(w *world) {
		c := cache.NewOf(w.a, &cache.OfOptions[int, []byte]{Options: cache.Options{MaxBytes: cache.MinBytes}, Values: &cache.Codec[[]byte]{
			Append: func(dst, v []byte) ([]byte, error) { return append(dst, v...), nil },
			Decode: func(b []byte) ([]byte, error) { f(w, b); return nil, nil },
		}})
		defer c.Close()
		freehold.Must(0, c.Set(1, cacheValue))
		c.Get(1)
		end(w)
	}
}

func nothing(*world) {}

var cachePrograms = []program{
	{"read of a View's value after the call", keptRead,
		inCache(func(w *world, c *cache.Cache) {
			var kept []byte
			c.View(cacheKey, func(e cache.Entry) { kept = e.Value })
			w.look(kept)
		}),
		inCache(func(w *world, c *cache.Cache) { c.View(cacheKey, func(e cache.Entry) { w.look(e.Value) }) })},
	{"write to a View's value during the call", lentWrite("cache.Cache.View"),
		inCache(func(w *world, c *cache.Cache) { c.View(cacheKey, func(e cache.Entry) { e.Value[0] = 2 }) }),
		inCache(func(w *world, c *cache.Cache) { c.View(cacheKey, func(e cache.Entry) { bytes.Clone(e.Value)[0] = 2 }) })},
	{"write to a View's value after the call", keptWrite,
		inCache(func(w *world, c *cache.Cache) {
			var kept []byte
			c.View(cacheKey, func(e cache.Entry) { kept = e.Value })
			kept[0] = 2
			viewMany(c)
		}),
		inCache(func(w *world, c *cache.Cache) { bytes.Clone(cacheValue)[0] = 2; viewMany(c) })},
	{"read of a Peek's value after the call", keptRead,
		inCache(func(w *world, c *cache.Cache) {
			var kept []byte
			c.Peek(cacheKey, func(e cache.Entry) { kept = e.Value })
			w.look(kept)
		}),
		inCache(func(w *world, c *cache.Cache) { c.Peek(cacheKey, func(e cache.Entry) { w.look(e.Value) }) })},
	{"write to a Peek's value", lentWrite("cache.Cache.Peek"),
		inCache(func(w *world, c *cache.Cache) { c.Peek(cacheKey, func(e cache.Entry) { e.Value[0] = 2 }) }),
		inCache(func(w *world, c *cache.Cache) { c.Peek(cacheKey, func(e cache.Entry) {}) })},
	{"read of a GetMany's value after the call", keptRead,
		inCache(func(w *world, c *cache.Cache) {
			var kept []byte
			c.GetMany([][]byte{cacheKey}, func(_ int, e cache.Entry) { kept = e.Value })
			w.look(kept)
		}),
		inCache(func(w *world, c *cache.Cache) {
			c.GetMany([][]byte{cacheKey}, func(_ int, e cache.Entry) { w.look(e.Value) })
		})},
	{"write to a GetMany's value", lentWrite("cache.Cache.GetMany"),
		inCache(func(w *world, c *cache.Cache) {
			c.GetMany([][]byte{cacheKey}, func(_ int, e cache.Entry) { e.Value[0] = 2 })
		}),
		inCache(func(w *world, c *cache.Cache) { c.GetMany([][]byte{cacheKey}, func(int, cache.Entry) {}) })},
	{"read of a value of All after its iteration", keptRead,
		inCache(func(w *world, c *cache.Cache) {
			var kept []byte
			for _, e := range c.All() {
				kept = e.Value
			}
			w.look(kept)
		}),
		inCache(func(w *world, c *cache.Cache) {
			for key, e := range c.All() {
				key[0], e.Value[0] = 2, 2 // All yields copies
			}
		})},
	{"read of the key of OnEvict after the call", keptRead,
		evicting(func(_ *world, key []byte, _ cache.Entry) { evictKept = key }, func(w *world) { w.look(evictKept) }),
		evicting(func(w *world, key []byte, e cache.Entry) { w.look(key); w.look(e.Value) }, nothing)},
	{"write to the value of OnEvict", lentWrite("cache.Options.OnEvict"),
		evicting(func(_ *world, _ []byte, e cache.Entry) { e.Value[0] = 2 }, nothing),
		evicting(func(*world, []byte, cache.Entry) {}, nothing)},
	{"read of an Update's value after the call", keptRead,
		inCache(func(w *world, c *cache.Cache) {
			var kept []byte
			c.Update(cacheKey, func(e *cache.Entry, _ bool) cache.Change { kept = e.Value; return cache.Store })
			w.look(kept)
		}),
		inCache(func(w *world, c *cache.Cache) {
			c.Update(cacheKey, func(e *cache.Entry, _ bool) cache.Change { w.look(e.Value); return cache.Store })
		})},
	{"write to an Update's value", lentWrite("cache.Cache.Update"),
		inCache(func(w *world, c *cache.Cache) {
			c.Update(cacheKey, func(e *cache.Entry, _ bool) cache.Change { e.Value[0] = 2; return cache.Store })
		}),
		inCache(func(w *world, c *cache.Cache) {
			c.Update(cacheKey, func(e *cache.Entry, _ bool) cache.Change {
				e.Value = bytes.Clone(e.Value)
				e.Value[0] = 2
				return cache.Store
			})
		})},
	{"a Codec whose Decode keeps its bytes", keptRead,
		decoding(func(_ *world, b []byte) { evictKept = b }, func(w *world) { w.look(evictKept) }),
		decoding(func(w *world, b []byte) { w.look(b) }, nothing)},
	{"a Codec whose Decode writes to its bytes", lentWrite("cache.Codec.Decode"),
		decoding(func(_ *world, b []byte) { b[0] = 2 }, nothing), decoding(func(*world, []byte) {}, nothing)},
	{"Get after Close of a Cache", always(panics("the cache is closed")),
		inCache(func(w *world, c *cache.Cache) { c.Close(); c.Get(nil, cacheKey) }),
		inCache(func(w *world, c *cache.Cache) { c.Get(nil, cacheKey); c.Close() })},
	{"Set after Close of a Cache", always(panics("the cache is closed")),
		inCache(func(w *world, c *cache.Cache) { c.Close(); c.Set(cacheKey, nil) }),
		inCache(func(w *world, c *cache.Cache) { c.Set(cacheKey, nil); c.Close() })},
	{"Close of a Cache in its View", always(panics("a call is under way")),
		inCache(func(w *world, c *cache.Cache) { c.View(cacheKey, func(cache.Entry) { c.Close() }) }),
		inCache(func(w *world, c *cache.Cache) { c.View(cacheKey, func(cache.Entry) {}); c.Close() })},
	{"Close of a Cache after Close of its heap", always(panics("is closed")),
		func(w *world) {
			c := cache.New(w.heap, &cache.Options{MaxBytes: cache.MinBytes})
			w.heap.Close()
			c.Close()
		},
		func(w *world) {
			c := cache.New(w.heap, &cache.Options{MaxBytes: cache.MinBytes})
			c.Close()
			w.heap.Close()
		}},
	{"a Cache without a bound", always(panics("MaxBytes 0, want")), makes(&cache.Options{}), makes(&cache.Options{MaxBytes: cache.MinBytes})},
	{"a Cache with a negative TTL", always(panics("Options.TTL -1ns")),
		makes(&cache.Options{MaxBytes: cache.MinBytes, TTL: -1}), makes(&cache.Options{MaxBytes: cache.MinBytes, TTL: 1})},
	{"a Cache that slides without a TTL", always(panics("Options.Sliding without a TTL")),
		makes(&cache.Options{MaxBytes: cache.MinBytes, Sliding: true}), makes(&cache.Options{MaxBytes: cache.MinBytes, Sliding: true, TTL: time.Minute})},
	{"a Cache with a jitter above 1", always(panics("Options.Jitter 1.5")),
		makes(&cache.Options{MaxBytes: cache.MinBytes, Jitter: 1.5}), makes(&cache.Options{MaxBytes: cache.MinBytes, Jitter: 1})},
	{"Resize of a Cache to less than an eighth", always(panics("cache.Cache.Resize: maxBytes 1000")),
		inCache(func(w *world, c *cache.Cache) { c.Resize(1000) }), inCache(func(w *world, c *cache.Cache) { c.Resize(2 * cache.MinBytes) })},
	{"an entry larger than MaxEntry", always(fails("entry is too large for the cache: key and value have")),
		inCache(func(w *world, c *cache.Cache) { w.err = c.Set(cacheKey, make([]byte, c.MaxEntry())) }),
		inCache(func(w *world, c *cache.Cache) { w.err = c.Set(cacheKey, make([]byte, c.MaxEntry()-len(cacheKey))) })},
	{"Restore of bytes that are no snapshot", always(fails("")),
		inCache(func(w *world, c *cache.Cache) { w.err = c.Restore(bytes.NewReader(make([]byte, 100))) }),
		inCache(func(w *world, c *cache.Cache) {
			var b bytes.Buffer
			w.err = errors.Join(c.Snapshot(&b), c.Restore(&b))
		})},
	{"an Of whose values have a pointer, without a Codec", always(panics("cache.NewOf")),
		func(w *world) {
			cache.NewOf(w.a, &cache.OfOptions[int, *int]{Options: cache.Options{MaxBytes: cache.MinBytes}})
		},
		func(w *world) {
			cache.NewOf(w.a, &cache.OfOptions[int, int]{Options: cache.Options{MaxBytes: cache.MinBytes}}).Close()
		}},
	{"an Of whose keys are floats, without a Codec", always(panics("needs a Codec")),
		func(w *world) {
			cache.NewOf(w.a, &cache.OfOptions[float64, int]{Options: cache.Options{MaxBytes: cache.MinBytes}})
		},
		func(w *world) {
			cache.NewOf(w.a, &cache.OfOptions[int, float64]{Options: cache.Options{MaxBytes: cache.MinBytes}}).Close()
		}},
	{"a Cache that is never closed", caught{leak: leaks("cache.Cache dropped without Close")}.andInTests(reports("leak of")),
		func(w *world) {
			freehold.Must(0, cache.New(w.a, &cache.Options{MaxBytes: cache.MinBytes}).Set(cacheKey, nil))
		},
		inCache(func(w *world, c *cache.Cache) {})},
}
