package btree

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/freehold-go/freehold"
)

// BenchmarkMap has random keys of several types.
func BenchmarkMap(b *testing.B) {
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			numbers, texts := make([]uint64, n), make([]string, n)
			for i := range numbers {
				numbers[i] = r.Uint64()
				texts[i] = fmt.Sprintf("%016x", numbers[i])
			}
			benchKeys(b, "uint64", New[uint64, uint64], numbers)
			byFunc := func(a freehold.Allocator, o *Options) *Map[uint64, uint64] {
				return NewFunc[uint64, uint64](a, cmp.Compare[uint64], o)
			}
			benchKeys(b, "uint64func", byFunc, numbers)
			small := make([]uint32, n)
			for i := range small {
				small[i] = uint32(numbers[i])
			}
			benchKeys(b, "uint32", New[uint32, uint64], small)
			benchKeys(b, "string", New[string, uint64], texts)
			benchSlice(b, numbers)
		})
	}
}

func benchKeys[K any](b *testing.B, name string, open func(freehold.Allocator, *Options) *Map[K, uint64], keys []K) {
	var m, other *Map[K, uint64]
	run := func(op string, f func(k K)) {
		b.Run("keys="+name+"/op="+op, func(b *testing.B) {
			heap := freehold.NewHeap(nil)
			defer heap.Close()
			m, other = open(heap, nil), open(heap, nil)
			defer m.Close()
			defer other.Close()
			if op != "Put" {
				for _, k := range keys {
					_ = m.Put(k, 1)
				}
			}
			i := 0
			for b.Loop() {
				f(keys[i])
				if i++; i == len(keys) {
					i = 0
				}
			}
		})
	}
	run("Get", func(k K) { m.Get(k) })
	run("Put", func(k K) { // into an empty map
		if m.Len() == len(keys) {
			m.Clear()
		}
		_ = m.Put(k, 1)
	})
	run("DeletePut", func(k K) { m.Delete(k); _ = m.Put(k, 1) })
	var sum uint64
	run("All", func(K) {
		for _, v := range m.All() {
			sum += v
		}
	})
	run("DeleteFunc", func(K) { // which deletes none
		m.DeleteFunc(func(_ K, v *uint64) bool { *v++; return false })
	})
	run("Load", func(K) {
		other.Clear()
		_ = other.Load(m.All())
	})
}

// benchSlice is the baseline: sorted slices, into which nothing is inserted.
func benchSlice(b *testing.B, keys []uint64) {
	sorted := slices.Sorted(slices.Values(keys))
	values := slices.Clone(sorted)
	i := 0
	b.Run("slice/op=Get", func(b *testing.B) {
		for b.Loop() {
			if at, ok := slices.BinarySearch(sorted, keys[i]); !ok || values[at] != keys[i] {
				b.Fatal("a key is gone")
			}
			if i++; i == len(keys) {
				i = 0
			}
		}
	})
	var sum uint64
	b.Run("slice/op=All", func(b *testing.B) {
		for b.Loop() {
			for i := range sorted {
				sum += values[i]
			}
		}
	})
}
