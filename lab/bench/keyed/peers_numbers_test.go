//go:build !peer_boost && !peer_absl

package keyed

import (
	"sync"

	"github.com/cockroachdb/swiss"
	google "github.com/google/btree"
	"github.com/puzpuzpuz/xsync/v4"
	tidwall "github.com/tidwall/btree"

	"github.com/freehold-go/freehold/btree"
	"github.com/freehold-go/freehold/hashmap"
)

var numbers = []peer[uint64]{
	{"freehold-map", func(room int) container[uint64] { return numbersOfMap(false, room) }},
	{"freehold-map-huge", func(room int) container[uint64] { return numbersOfMap(true, room) }},
	{"go-map", func(room int) container[uint64] {
		m := make(map[uint64]uint64, room)
		return ofBatches(
			func(k uint64) (v uint64, ok bool) { v, ok = m[k]; return },
			func() (sum uint64) {
				for k, v := range m {
					sum += k ^ v
				}
				return sum
			},
			batched[uint64]{
				func(keys []uint64, first uint64) {
					for i, k := range keys {
						m[k] = first + uint64(i)
					}
				},
				func(keys []uint64) (sum uint64) {
					for _, k := range keys {
						if v, ok := m[k]; ok {
							sum += v
						} else {
							sum++
						}
					}
					return sum
				},
				func(keys []uint64) {
					for _, k := range keys {
						delete(m, k)
					}
				},
			})
	}},
	{"cockroach-swiss", func(room int) container[uint64] {
		m := swiss.New[uint64, uint64](room)
		return ofBatches(m.Get,
			func() (sum uint64) {
				m.All(func(k, v uint64) bool { sum += k ^ v; return true })
				return sum
			},
			batched[uint64]{
				func(keys []uint64, first uint64) {
					for i, k := range keys {
						m.Put(k, first+uint64(i))
					}
				},
				func(keys []uint64) (sum uint64) {
					for _, k := range keys {
						if v, ok := m.Get(k); ok {
							sum += v
						} else {
							sum++
						}
					}
					return sum
				},
				func(keys []uint64) {
					for _, k := range keys {
						m.Delete(k)
					}
				},
			})
	}},
}

func numbersOfMap(hugePages bool, room int) container[uint64] {
	m := hashmap.New[uint64, uint64](heap(hugePages), nil)
	must(m.Grow(room))
	c := ofBatches(m.Get,
		func() (sum uint64) {
			for k, v := range m.All() {
				sum += k ^ v
			}
			return sum
		},
		batched[uint64]{
			func(keys []uint64, first uint64) {
				for i, k := range keys {
					must(m.Put(k, first+uint64(i)))
				}
			},
			func(keys []uint64) (sum uint64) {
				for _, k := range keys {
					if v, ok := m.Get(k); ok {
						sum += v
					} else {
						sum++
					}
				}
				return sum
			},
			func(keys []uint64) {
				for _, k := range keys {
					m.Delete(k)
				}
			},
		})
	c.getMany = func(keys, values []uint64, found []bool) { m.GetMany(keys, values, found) }
	return c
}

var shared = []peer[uint64]{
	{"freehold-sharded", func(int) container[uint64] {
		m := hashmap.NewShared[uint64, uint64](heap(false), nil)
		return container[uint64]{
			put: func(k, v uint64) { must(m.Put(k, v)) }, get: m.Get, delete: func(k uint64) { m.Delete(k) },
		}
	}},
	{"xsync-map", func(int) container[uint64] {
		m := xsync.NewMap[uint64, uint64]()
		return container[uint64]{put: m.Store, get: m.Load, delete: m.Delete}
	}},
	{"sync-map", func(int) container[uint64] {
		m := &sync.Map{}
		return container[uint64]{
			put: func(k, v uint64) { m.Store(k, v) },
			get: func(k uint64) (uint64, bool) {
				v, ok := m.Load(k)
				if !ok {
					return 0, false
				}
				return v.(uint64), true
			},
			delete: func(k uint64) { m.Delete(k) },
		}
	}},
	{"go-map-rwmutex", lockedMaps},
}

// lockedMaps is 256 Go maps, each under a sync.RWMutex. It relies on keys that look random.
func lockedMaps(int) container[uint64] {
	type lockedMap struct {
		mu sync.RWMutex
		m  map[uint64]uint64
		_  [64 - 24 - 8]byte
	}
	all := new([256]lockedMap)
	for i := range all {
		all[i].m = map[uint64]uint64{}
	}
	return container[uint64]{
		put: func(k, v uint64) {
			m := &all[k>>56]
			m.mu.Lock()
			m.m[k] = v
			m.mu.Unlock()
		},
		get: func(k uint64) (uint64, bool) {
			m := &all[k>>56]
			m.mu.RLock()
			v, ok := m.m[k]
			m.mu.RUnlock()
			return v, ok
		},
		delete: func(k uint64) {
			m := &all[k>>56]
			m.mu.Lock()
			delete(m.m, k)
			m.mu.Unlock()
		},
	}
}

var ordered = []peer[uint64]{
	{"freehold-btree", func(int) container[uint64] {
		m := btree.New[uint64, uint64](heap(false), nil)
		return container[uint64]{
			put: func(k, v uint64) { must(m.Put(k, v)) }, get: m.Get, delete: func(k uint64) { m.Delete(k) },
			scan: func() (sum uint64) {
				for k, v := range m.All() {
					sum += k ^ v
				}
				return sum
			},
		}
	}},
	{"google-btree", func(int) container[uint64] {
		type item struct{ key, value uint64 }
		// The degree is from the benchmarks of its documentation.
		m := google.NewG(32, func(a, b item) bool { return a.key < b.key })
		return container[uint64]{
			put:    func(k, v uint64) { m.ReplaceOrInsert(item{k, v}) },
			get:    func(k uint64) (uint64, bool) { it, ok := m.Get(item{key: k}); return it.value, ok },
			delete: func(k uint64) { m.Delete(item{key: k}) },
			scan: func() (sum uint64) {
				m.Ascend(func(it item) bool { sum += it.key ^ it.value; return true })
				return sum
			},
		}
	}},
	{"tidwall-btree", func(int) container[uint64] {
		m := &tidwall.Map[uint64, uint64]{}
		return container[uint64]{
			put: func(k, v uint64) { m.Set(k, v) }, get: m.Get, delete: func(k uint64) { m.Delete(k) },
			scan: func() (sum uint64) {
				m.Scan(func(k, v uint64) bool { sum += k ^ v; return true })
				return sum
			},
		}
	}},
}
