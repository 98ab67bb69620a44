//go:build !peer_boost && !peer_absl

package keyed

import (
	"github.com/cockroachdb/swiss"

	"github.com/freehold-go/freehold/hashmap"
)

var numbers = []peer[uint64]{
	{"freehold-map", func(int) container[uint64] { return numbersOfMap(false) }},
	{"freehold-map-huge", func(int) container[uint64] { return numbersOfMap(true) }},
	{"go-map", func(int) container[uint64] {
		m := map[uint64]uint64{}
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
	{"cockroach-swiss", func(int) container[uint64] {
		m := swiss.New[uint64, uint64](0)
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

func numbersOfMap(hugePages bool) container[uint64] {
	m := hashmap.New[uint64, uint64](heap(hugePages), nil)
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
