package main

import (
	"fmt"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/hashmap"
)

var mapShape = shape{
	name:  "map",
	title: "map of strings",
	stores: []store{
		{"go", "map[string]uint64, keys of 16 bytes", 64, func(n int) (dataset, error) {
			return goMap(make(map[string]uint64, n)), nil
		}},
		{"flat", "map[[16]byte]uint64, on the Go heap", 56, func(n int) (dataset, error) {
			return flatMap(make(map[keyText]uint64, n)), nil
		}},
		{"freehold", "hashmap.Map[string, uint64]", 64, func(n int) (dataset, error) {
			h := freehold.NewHeap(&freehold.HeapOptions{Name: "gclab"})
			m := &offMap{h, hashmap.New[string, uint64](h, nil)}
			if err := m.entries.Grow(n); err != nil {
				m.close()
				return nil, err
			}
			return m, nil
		}},
	},
}

// goMap is Go's map of strings.
type goMap map[string]uint64

func (m goMap) add(from, to int) error {
	for i := from; i < to; i++ {
		key := keyOf(i)
		m[string(key[:])] = valueOf(uint64(i))
	}
	return nil
}

func (m goMap) check(stride int) error {
	return checkKeys(len(m), stride, func(key keyText) uint64 { return m[string(key[:])] })
}

func (goMap) offHeap() int64 { return 0 }
func (goMap) close()         {}

// flatMap is Go's map without pointers.
type flatMap map[keyText]uint64

func (m flatMap) add(from, to int) error {
	for i := from; i < to; i++ {
		m[keyOf(i)] = valueOf(uint64(i))
	}
	return nil
}

func (m flatMap) check(stride int) error {
	return checkKeys(len(m), stride, func(key keyText) uint64 { return m[key] })
}

func (flatMap) offHeap() int64 { return 0 }
func (flatMap) close()         {}

// offMap is a map of strings, off-heap.
type offMap struct {
	heap    *freehold.Heap
	entries *hashmap.Map[string, uint64]
}

func (m *offMap) add(from, to int) error {
	for i := from; i < to; i++ {
		key := keyOf(i)
		if err := hashmap.PutBytes(m.entries, key[:], valueOf(uint64(i))); err != nil {
			return err
		}
	}
	return nil
}

func (m *offMap) check(stride int) error {
	return checkKeys(m.entries.Len(), stride, func(key keyText) uint64 {
		v, _ := hashmap.GetBytes(m.entries, key[:])
		return v
	})
}

func (m *offMap) offHeap() int64 { return int64(m.heap.Stats().Committed) }
func (m *offMap) close() {
	m.entries.Close()
	m.heap.Close()
}

// checkKeys verifies every stride-th of n entries.
func checkKeys(n, stride int, get func(keyText) uint64) error {
	for i := 0; i < n; i += stride {
		key := keyOf(i)
		if err := checkEntry(i, get(key)); err != nil {
			return fmt.Errorf("key %s: %w", key[:], err)
		}
	}
	return nil
}
