package keyed

import (
	"encoding/binary"
	"runtime"
	"slices"
	"strings"
	"unique"
	"unsafe"

	"github.com/VictoriaMetrics/fastcache"
	"github.com/cockroachdb/swiss"
	"github.com/puzpuzpuz/xsync/v4"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/hashmap"
	"github.com/freehold-go/freehold/intern"
)

// A container has the calls that are benchmarked, with numbers as values. A call that a peer does
// not have is nil. A call through it takes a nanosecond, the same for all peers.
type container[K any] struct {
	put     func(k K, v uint64)
	get     func(k K) (uint64, bool)
	delete  func(k K)
	getMany func(keys []K, values []uint64, found []bool)
	scan    func() (sum uint64)
	share   func(keys []K, choices []byte) // 0: get, 1: put, 2: delete; or nil

	*batched[K] // or nil
}

// batched are loops over some keys: put with the values first, first+1 and so on. The calls in them
// are direct, as they are in C++.
type batched[K any] struct {
	putAll    func(keys []K, first uint64)
	lookAll   func(keys []K) (sum uint64)
	deleteAll func(keys []K)
}

// ofBatches returns a container that puts and deletes one key as a batch.
func ofBatches[K any](get func(k K) (uint64, bool), scan func() uint64, b batched[K]) container[K] {
	return container[K]{
		put:     func(k K, v uint64) { b.putAll([]K{k}, v) },
		delete:  func(k K) { b.deleteAll([]K{k}) },
		get:     get,
		scan:    scan,
		batched: &b,
	}
}

// fill puts keys with the values first, first+1 and so on.
func (c container[K]) fill(keys []K, first uint64) {
	if c.batched != nil {
		c.putAll(keys, first)
		return
	}
	for i, k := range keys {
		c.put(k, first+uint64(i))
	}
}

// look returns the sum of the values of keys, 1 for one that is not there.
func (c container[K]) look(keys []K) (sum uint64) {
	if c.batched != nil {
		return c.lookAll(keys)
	}
	for _, k := range keys {
		if v, ok := c.get(k); ok {
			sum += v
		} else {
			sum++
		}
	}
	return sum
}

// remove deletes keys.
func (c container[K]) remove(keys []K) {
	if c.batched != nil {
		c.deleteAll(keys)
		return
	}
	for _, k := range keys {
		c.delete(k)
	}
}

// do gets a key if its choice is 0, puts it if that is 1, and deletes it otherwise.
func (c container[K]) do(keys []K, choices []byte) {
	if c.share != nil {
		c.share(keys, choices)
		return
	}
	for i, k := range keys {
		switch choices[i] {
		case 0:
			c.get(k)
		case 1:
			c.put(k, uint64(i))
		default:
			c.delete(k)
		}
	}
}

// A peer makes containers, with room for entries where it can or must.
type peer[K any] struct {
	name  string
	fresh func(room int) container[K]
}

// A pair is a value of a map of strings.
type pair struct{ a, b uint64 }

// must ends the benchmark: a container that runs out of memory has no figure.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func heap(hugePages bool) *freehold.Heap {
	return freehold.NewHeap(&freehold.HeapOptions{HugePages: hugePages})
}

// All maps of strings own copies of them.
var texts = []peer[string]{
	{"freehold-map", func(int) container[string] { return textsOfMap(false) }},
	{"freehold-map-huge", func(int) container[string] { return textsOfMap(true) }},
	{"go-map", func(int) container[string] {
		m := map[string]pair{}
		return container[string]{
			put: func(k string, v uint64) { m[strings.Clone(k)] = pair{v, 1} },
			get: func(k string) (uint64, bool) { v, ok := m[k]; return v.a, ok },
		}
	}},
	{"cockroach-swiss", func(int) container[string] {
		m := swiss.New[string, pair](0)
		return container[string]{
			put: func(k string, v uint64) { m.Put(strings.Clone(k), pair{v, 1}) },
			get: func(k string) (uint64, bool) { v, ok := m.Get(k); return v.a, ok },
		}
	}},
	{"fastcache", fastcacheOf},
}

func textsOfMap(hugePages bool) container[string] {
	m := hashmap.New[string, pair](heap(hugePages), nil)
	return container[string]{
		put: func(k string, v uint64) { must(m.Put(k, pair{v, 1})) },
		get: func(k string) (uint64, bool) { v, ok := m.Get(k); return v.a, ok },
	}
}

// fastcacheOf has room for twice the bytes of the entries: 4 B of lengths, key and value. It drops
// entries where its buckets differ in load, so a get may miss.
func fastcacheOf(n int) container[string] {
	m := fastcache.New(2 * n * (4 + stringBytes + 16))
	c := container[string]{
		put: func(k string, v uint64) {
			var b [16]byte
			binary.LittleEndian.PutUint64(b[:], v)
			binary.LittleEndian.PutUint64(b[8:], 1)
			m.Set(unsafe.Slice(unsafe.StringData(k), len(k)), b[:])
		},
		get: func(k string) (uint64, bool) {
			var room [16]byte
			b := m.Get(room[:0], unsafe.Slice(unsafe.StringData(k), len(k)))
			if len(b) < 16 {
				return 0, false
			}
			return binary.LittleEndian.Uint64(b), true
		},
	}
	return c
}

// textsToTexts have values of 16 B: a number twice.
var textsToTexts = []peer[string]{
	{"freehold-map", func(int) container[string] { return textsToTextsOfMap(false) }},
	{"freehold-map-huge", func(int) container[string] { return textsToTextsOfMap(true) }},
	{"go-map", func(int) container[string] {
		m := map[string]string{}
		return container[string]{
			put: func(k string, v uint64) { m[strings.Clone(k)] = string(textWith(&[16]byte{}, v)) },
			get: func(k string) (uint64, bool) { v, ok := m[k]; return numberInText(v), ok },
			scan: func() (sum uint64) {
				for k, v := range m {
					sum += numberInText(k) ^ numberInText(v)
				}
				return sum
			},
		}
	}},
	{"cockroach-swiss", func(int) container[string] {
		m := swiss.New[string, string](0)
		return container[string]{
			put: func(k string, v uint64) { m.Put(strings.Clone(k), string(textWith(&[16]byte{}, v))) },
			get: func(k string) (uint64, bool) { v, ok := m.Get(k); return numberInText(v), ok },
			scan: func() (sum uint64) {
				for k, v := range m.All {
					sum += numberInText(k) ^ numberInText(v)
				}
				return sum
			},
		}
	}},
}

func textsToTextsOfMap(hugePages bool) container[string] {
	m := hashmap.New[string, string](heap(hugePages), nil)
	var room [16]byte // Put copies
	var got []string
	return container[string]{
		put: func(k string, v uint64) { must(m.Put(k, unsafe.String(&textWith(&room, v)[0], len(room)))) },
		get: func(k string) (uint64, bool) { v, ok := m.Get(k); return numberInText(v), ok },
		getMany: func(keys []string, values []uint64, found []bool) {
			got = slices.Grow(got[:0], len(keys))[:len(keys)]
			m.GetMany(keys, got, found)
			for i, v := range got {
				values[i] = numberInText(v)
			}
		},
		scan: func() (sum uint64) {
			for k, v := range m.All() {
				sum += numberInText(k) ^ numberInText(v)
			}
			return sum
		},
	}
}

func textWith(b *[16]byte, v uint64) []byte {
	binary.LittleEndian.PutUint64(b[:], v)
	binary.LittleEndian.PutUint64(b[8:], v)
	return b[:]
}

// numberInText returns the number at the beginning of s, 0 if s is empty.
func numberInText(s string) uint64 {
	if s == "" {
		return 0
	}
	return binary.LittleEndian.Uint64(unsafe.Slice(unsafe.StringData(s), 8))
}

// sharedBytes have values of 128 B: a number at both ends.
var sharedBytes = []peer[string]{
	{"freehold-sharded", func(int) container[string] {
		return bytesOfShared(func(m *hashmap.Shared[string, []byte], k string) (uint64, bool) {
			v, ok := m.Get(k)
			return numberIn(v), ok
		})
	}},
	{"freehold-sharded-append", func(int) container[string] {
		return bytesOfShared(func(m *hashmap.Shared[string, []byte], k string) (uint64, bool) {
			var room [valueBytes]byte
			b, ok := m.AppendTo(room[:0], k)
			return numberIn(b), ok
		})
	}},
	{"freehold-sharded-view", func(int) container[string] {
		return bytesOfShared(func(m *hashmap.Shared[string, []byte], k string) (n uint64, ok bool) {
			ok = m.View(k, func(b []byte) { n = numberIn(b) })
			return n, ok
		})
	}},
	{"fastcache", func(n int) container[string] {
		m := fastcache.New(2 * n * (4 + stringBytes + valueBytes))
		return container[string]{
			put: func(k string, v uint64) {
				b := bytesWith(v)
				m.Set(unsafe.Slice(unsafe.StringData(k), len(k)), b[:])
			},
			get: func(k string) (uint64, bool) {
				var room [valueBytes]byte
				b, ok := m.HasGet(room[:0], unsafe.Slice(unsafe.StringData(k), len(k)))
				return numberIn(b), ok
			},
			delete: func(k string) { m.Del(unsafe.Slice(unsafe.StringData(k), len(k))) },
		}
	}},
	{"xsync-map", func(int) container[string] {
		m := xsync.NewMap[string, []byte]()
		return container[string]{
			put:    func(k string, v uint64) { b := bytesWith(v); m.Store(strings.Clone(k), b[:]) },
			get:    func(k string) (uint64, bool) { v, ok := m.Load(k); return numberIn(v), ok },
			delete: m.Delete,
		}
	}},
}

func bytesOfShared(get func(m *hashmap.Shared[string, []byte], k string) (uint64, bool)) container[string] {
	m := hashmap.NewShared[string, []byte](heap(false), nil)
	return container[string]{
		put:    func(k string, v uint64) { b := bytesWith(v); must(m.Put(k, b[:])) },
		get:    func(k string) (uint64, bool) { return get(m, k) },
		delete: func(k string) { m.Delete(k) },
	}
}

const valueBytes = 128

func bytesWith(v uint64) (b [valueBytes]byte) {
	binary.LittleEndian.PutUint64(b[:], v)
	binary.LittleEndian.PutUint64(b[valueBytes-8:], v)
	return b
}

// numberIn returns the number of a value, or 0 if there is none, and looks at both ends.
func numberIn(b []byte) uint64 {
	if len(b) < valueBytes {
		return 0
	}
	return binary.LittleEndian.Uint64(b) & binary.LittleEndian.Uint64(b[valueBytes-8:])
}

var interned = []peer[string]{
	{"freehold-intern", func(int) container[string] { return internStrings(false) }},
	{"freehold-intern-huge", func(int) container[string] { return internStrings(true) }},
	{"go-map-intern", func(int) container[string] {
		m := map[string]string{}
		return container[string]{put: func(k string, _ uint64) {
			if _, ok := m[k]; !ok {
				k = strings.Clone(k)
				m[k] = k
			}
		}}
	}},
	{"go-map-slice", func(int) container[string] { // with IDs, as package intern has
		ids, all := map[string]uint32{}, []string{}
		return container[string]{put: func(k string, _ uint64) {
			if _, ok := ids[k]; !ok {
				k = strings.Clone(k)
				ids[k] = uint32(len(all))
				all = append(all, k)
			}
		}}
	}},
	{"unique", func(int) container[string] {
		var handles []unique.Handle[string] // kept, as package unique forgets what has none
		return container[string]{put: func(k string, _ uint64) { handles = append(handles, unique.Make(k)) }}
	}},
}

func internStrings(hugePages bool) container[string] {
	s := intern.New(heap(hugePages), nil)
	return container[string]{put: func(k string, _ uint64) {
		_, err := s.Intern(k)
		must(err)
	}}
}

// keep keeps a container alive.
func keep[K any](c container[K]) { runtime.KeepAlive(c.put) }
