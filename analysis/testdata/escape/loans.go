package escape

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/extsort"
	"github.com/freehold-go/freehold/hashmap"
)

type item struct {
	id   int
	data []byte
	next *item
}

type session struct {
	cache *cache.Cache
	last  []byte
	seen  map[string][]byte
	all   [][]byte
	queue chan []byte
	item  item
	entry cache.Entry
}

var lastKey []byte

func keptVariables(c *cache.Cache, k []byte) (named []byte) {
	var value, part, trimmed, before []byte
	var entry cache.Entry
	var of *byte
	c.View(k, func(e cache.Entry) { value = e.Value })                                              // want `memory of cache.Cache.View is stored and outlives the call; keep a copy`
	c.Peek(k, func(e cache.Entry) { part = e.Value[1:3] })                                          // want `memory of cache.Cache.Peek is stored`
	c.GetMany([][]byte{k}, func(_ int, e cache.Entry) { entry = e })                                // want `memory of cache.Cache.GetMany is stored`
	c.View(k, func(e cache.Entry) { trimmed = bytes.TrimSpace(e.Value) })                           // want `memory of cache.Cache.View is stored`
	c.View(k, func(e cache.Entry) { before, _, _ = bytes.Cut(e.Value, k) })                         // want `memory of cache.Cache.View is stored`
	c.View(k, func(e cache.Entry) { of = &e.Value[0] })                                             // want `memory of cache.Cache.View is stored`
	c.View(k, func(e cache.Entry) { named = e.Value })                                              // want `memory of cache.Cache.View is stored`
	c.Update(k, func(e *cache.Entry, _ bool) cache.Change { lastKey = e.Value; return cache.Keep }) // want `memory of cache.Cache.Update is stored`
	use(value, part, entry.Value, trimmed, before)
	use(of)
	var written []byte
	c.View(k, func(e cache.Entry) { written = e.Value }) // want `is stored`
	written[0] = 1
	return named
}

func keptInBranches(c *cache.Cache, k []byte) []byte {
	var v []byte
	found := c.View(k, func(e cache.Entry) {
		if e.Flags > 0 {
			v = e.Value // want `is stored`
		} else {
			v = e.Value[4:] // want `is stored`
		}
	})
	if !found {
		v = k
	}
	return v
}

func keptInContainers(c *cache.Cache, s *session, keys [][]byte) ([]item, *item) {
	var list [][]byte
	var items []item
	byKey := map[string][]byte{}
	values := make([][]byte, len(keys))
	made := &item{}
	var own item
	c.GetMany(keys, func(i int, e cache.Entry) {
		list = append(list, e.Value)                 // want `memory of cache.Cache.GetMany is stored`
		items = append(items, item{i, e.Value, nil}) // want `memory of cache.Cache.GetMany is stored`
		byKey[string(keys[i])] = e.Value             // want `memory of cache.Cache.GetMany is stored`
		values[i] = e.Value                          // want `memory of cache.Cache.GetMany is stored`
		made.data = e.Value                          // want `memory of cache.Cache.GetMany is stored`
		own.data = e.Value                           // want `memory of cache.Cache.GetMany is stored`
		made.next = &item{data: e.Value}             // want `memory of cache.Cache.GetMany is stored`
		s.seen["x"] = e.Value                        // want `memory of cache.Cache.GetMany is stored`
		s.all[i] = e.Value                           // want `memory of cache.Cache.GetMany is stored`
		s.item.data = e.Value                        // want `memory of cache.Cache.GetMany is stored`
		s.entry = e                                  // want `memory of cache.Cache.GetMany is stored`
	})
	for _, v := range list {
		use(v)
	}
	use(byKey["x"], values[0], own.data)
	return items, made
}

func keptByOthers(s *session, k []byte, values [][]byte, queue chan<- []byte) {
	s.cache.View(k, func(e cache.Entry) { values[0] = e.Value }) // want `is stored`
	s.cache.View(k, func(e cache.Entry) { s.queue <- e.Value })  // want `memory of cache.Cache.View is sent and outlives the call`
	s.cache.View(k, func(e cache.Entry) {
		select { // want `is sent`
		case queue <- e.Value:
		default:
		}
	})
	s.cache.View(k, func(e cache.Entry) {
		go func() { use(e.Value) }() // want `memory of cache.Cache.View is used by a goroutine and outlives the call`
	})
	s.cache.View(k, func(e cache.Entry) {
		go use(e.Value) // want `is used by a goroutine`
	})
	s.cache.View(k, s.keep)
	keep := func(e cache.Entry) { s.last = e.Value } // want `is stored`
	s.cache.View(k, keep)
}

func (s *session) keep(e cache.Entry) { s.last = e.Value } // want `memory of cache.Cache.View is stored`

func keptBetween(c *cache.Cache, keys [][]byte) (equal int) {
	var before []byte
	c.GetMany(keys, func(_ int, e cache.Entry) {
		if bytes.Equal(before, e.Value) {
			equal++
		}
		before = e.Value // want `memory of cache.Cache.GetMany is stored`
	})
	return equal
}

func keptFromLoops(c *cache.Cache, ctx context.Context, r io.Reader) (keys [][]byte, longest []byte, err error) {
	for k, e := range c.All() {
		if e.Flags > 1 {
			keys = append(keys, k) // want `memory of cache.Cache.All is stored and outlives the iteration; keep a copy`
		}
	}
	for _, e := range c.All() {
		if e.Flags > 1 {
			return nil, e.Value, nil // want `memory of cache.Cache.All is stored`
		}
	}
	for line := range extsort.Sorted(ctx, nil, r) {
		if len(line) > len(longest) {
			longest = line // want `memory of extsort.Sorted is stored and outlives the iteration`
		}
	}
	sorted := extsort.SortedSeq(ctx, nil, func(func([]byte) bool) {})
	for line, e := range sorted {
		longest, err = line, e // want `memory of extsort.SortedSeq is stored`
	}
	return keys, longest, err
}

func keptInLoops(c *cache.Cache, keys [][]byte) [][]byte {
	var all [][]byte
	for k := range each(keys) {
		var v []byte
		c.View(k, func(e cache.Entry) { v = e.Value }) // want `is stored`
		use(v)
		c.View(k, func(e cache.Entry) { all = append(all, e.Value) }) // want `is stored`
	}
	return all
}

func each(keys [][]byte) func(func([]byte) bool) { return func(func([]byte) bool) {} }

func keptByOptions(parent freehold.Allocator, s *session) (dropped [][]byte) {
	o := &cache.Options{MaxBytes: 1 << 20, OnEvict: func(key []byte, e cache.Entry, _ cache.Reason) {
		lastKey = key                      // want `memory of cache.Options.OnEvict is stored`
		dropped = append(dropped, e.Value) // want `memory of cache.Options.OnEvict is stored`
		s.queue <- e.Value                 // want `memory of cache.Options.OnEvict is sent`
	}}
	o.OnEvict = s.evicted
	c := cache.New(parent, o)
	defer c.Close()
	_ = cache.OfOptions[int, []byte]{Values: &cache.Codec[[]byte]{
		Append: func(dst, v []byte) ([]byte, error) { return append(dst, v...), nil },
		Decode: func(b []byte) ([]byte, error) { return b[1:], nil }, // want `memory of cache.Codec.Decode is returned`
	}}
	_ = cache.Codec[item]{Decode: func(b []byte) (i item, err error) {
		i.data = b
		return i, nil // want `memory of cache.Codec.Decode is returned`
	}}
	_ = cache.Codec[item]{Decode: func(b []byte) (item, error) { return item{data: bytes.Clone(b)}, nil }}
	_ = extsort.Options{Key: func(dst, record []byte) []byte {
		lastKey = record // want `memory of extsort.Options.Key is stored`
		return record[1:]
	}}
	return dropped
}

func (s *session) evicted(key []byte, e cache.Entry, _ cache.Reason) {
	s.last = e.Value // want `memory of cache.Options.OnEvict is stored`
	s.seen[string(key)] = append([]byte(nil), e.Value...)
}

func keptOfMaps(m *hashmap.Map[string, []byte], s *hashmap.Shared[string, string], k []byte) (old, kept []byte, text string) {
	m.Update("k", func(v *[]byte, found bool) {
		old = *v // want `memory of hashmap.Map.Update is stored`
		*v = k
	})
	hashmap.UpdateBytes(m, k, func(v *[]byte, found bool) { kept = (*v)[2:] })    // want `memory of hashmap.UpdateBytes is stored`
	s.View("k", func(v string) { text = v })                                      // want `memory of hashmap.Shared.View is stored`
	hashmap.ViewSharedBytes(s, k, func(v string) { text = strings.TrimSpace(v) }) // want `memory of hashmap.ViewSharedBytes is stored`
	return old, kept, text
}

// What is copied, or has no memory, may be kept.
func copied(c *cache.Cache, s *session, k []byte, values [][]byte) (v, w, x []byte, text string, n int, flags uint64) {
	c.View(k, func(e cache.Entry) {
		v = bytes.Clone(e.Value)
		w = append(w[:0], e.Value...)
		x = make([]byte, len(e.Value))
		copy(x, e.Value)
		text = string(e.Value)
		n = len(e.Value)
		flags = e.Flags
		if n > 0 {
			n += int(e.Value[0])
		}
		s.seen[string(e.Value)] = k
		s.entry.Flags = e.Flags
		values[0] = append([]byte(nil), e.Value...)
		e.Value = bytes.Clone(e.Value)
		s.last, s.entry = e.Value, e
	})
	for k, e := range c.All() {
		k[0], e.Value[0] = 1, 1
		text += string(k)
		s.queue <- bytes.ToUpper(e.Value)
	}
	return v, w, x, text, n, flags
}

// What only the function itself reads does not outlive it.
func localOnly(c *cache.Cache, s *session, k []byte, results chan int) (n int) {
	var scratch item
	var v, u []byte
	var parts [][]byte
	c.View(k, func(e cache.Entry) {
		scratch.id++
		scratch.data = e.Value
		n += sum(&scratch)
		v = e.Value
		n += len(bytes.ToUpper(v))
		parts = append(parts[:0], e.Value)
		n += total(parts)
		mine := map[string][]byte{"x": e.Value}
		use(mine["x"])
		var field item
		field.data = e.Value
		use(field.data)
		u = e.Value
	})
	if v == nil || len(u) > 3 || scratch.id > 3 {
		n++
	}
	v = k
	use(v)
	c.View(k, func(e cache.Entry) {
		s.last = e.Value
		n += sum(&s.item)
		s.last = nil
	})
	c.View(k, func(e cache.Entry) {
		s.last = e.Value
		defer func() { s.last = nil }()
		use(s.last)
	})
	c.View(k, func(e cache.Entry) {
		s.last = e.Value
		s.forget()
	})
	c.View(k, func(e cache.Entry) {
		s.last = e.Value
		s.seen["x"] = e.Value
		use(s)
	})
	s.last = nil
	delete(s.seen, "x")
	c.View(k, func(e cache.Entry) {
		var group sync.WaitGroup
		group.Add(1)
		go func() { defer group.Done(); use(e.Value) }()
		group.Wait()
	})
	c.View(k, func(e cache.Entry) {
		s.queue <- e.Value
		<-results
	})
	c.View(k, func(e cache.Entry) {
		flags := e.Flags
		go func() { use(e.TTL, flags) }()
	})
	return n
}

// Of an Entry without its value, nothing refers to the cache.
func flagsOf(c *cache.Cache, s *session, k []byte) (flags uint64, old cache.Entry) {
	var seen cache.Entry
	c.View(k, func(e cache.Entry) { seen = e })
	c.View(k, func(e cache.Entry) { old = e; old.Value = bytes.Clone(e.Value) })
	c.View(k, func(e cache.Entry) { s.entry = e; s.entry.Value = nil })
	return seen.Flags + seen.Version, old
}

func (s *session) forget() { s.last = nil }

func changed(c *cache.Cache, m *hashmap.Map[string, string], counts *hashmap.Map[string, int], k []byte) (kept string, n int) {
	c.Update(k, func(e *cache.Entry, found bool) cache.Change {
		e.Value = append(bytes.Clone(e.Value), k...)
		lastKey = e.Value
		return cache.Store
	})
	c.Update(k, func(e *cache.Entry, found bool) cache.Change {
		e.Value = e.Value[:1]
		e.Flags++
		return cache.Store
	})
	m.Update("k", func(v *string, found bool) {
		*v = "new"
		kept = *v
	})
	m.Update("k", func(v *string, found bool) { *v = (*v)[1:] })
	counts.Update("k", func(v *int, found bool) { *v++; n = *v })
	return kept, n
}

// Keys that a map's loop yields stay until the map changes.
func keysOf(m *hashmap.Map[string, int]) (keys []string) {
	for k := range m.All() {
		keys = append(keys, k)
	}
	return keys
}

func use(...any)           {}
func sum(i *item) int      { return len(i.data) }
func total(p [][]byte) int { return len(p) }

func keptPart(c *cache.Cache, k []byte) (part, text []byte, mine [][]byte) {
	c.View(k, func(e cache.Entry) {
		v := e.Value
		if len(v) > 3 {
			v = v[:3]
		}
		part = v // want `is stored`
	})
	c.View(k, func(e cache.Entry) {
		v := e.Value
		if len(v) > 3 {
			v = bytes.ToUpper(v)
		}
		text = v // it may be a copy
	})
	c.View(k, func(e cache.Entry) {
		list := [][]byte{e.Value}
		list = append(list, k)
		mine = list // want `is stored`
	})
	return part, text, mine
}

// Nobody reads it again before it is replaced.
func forAWhile(c *cache.Cache, s *session, k []byte) (n int) {
	c.View(k, func(e cache.Entry) { lastKey = e.Value; use(s) })
	lastKey = nil
	s.cache.View(k, s.hold)
	s.item.next = nil
	c.View(k, func(e cache.Entry) {
		defer func() { s.last = nil }()
		s.last = e.Value
		use(s.last)
	})
	made, it := &item{}, s.item
	var list [][]byte
	var other item
	var v []byte
	queue := make(chan []byte, 1)
	c.View(k, func(e cache.Entry) {
		made.data, it.data, other.data = e.Value, e.Value, e.Value
		n += sum(made) + sum(&it) + sum(&other)
		list = append(list, e.Value)
	})
	use(other.next)
	c.View(k, func(e cache.Entry) { queue <- e.Value })
	for range 3 {
		c.View(k, func(e cache.Entry) {
			v = e.Value
			n += len(bytes.ToUpper(v))
		})
	}
	return n
}

func (s *session) hold(e cache.Entry) { s.item.next = &item{data: e.Value} }
