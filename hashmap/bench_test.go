package hashmap

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/freehold-go/freehold"
)

// benchEntries is 1M: larger than the caches, and filled in a second.
const benchEntries = 1 << 20

func benchKeys() (keys, others []uint64) {
	r := rand.New(rand.NewPCG(1, 2))
	for range benchEntries {
		k := r.Uint64()
		keys, others = append(keys, k&^1), append(others, k|1)
	}
	return keys, others
}

var benchSum uint64

// BenchmarkGet finds keys at random, BenchmarkGetMany sixteen at a time.
func BenchmarkGet(b *testing.B) {
	keys, others := benchKeys()
	h := freehold.NewHeap(nil)
	defer h.Close()
	m, g := New[uint64, uint64](h, nil), map[uint64]uint64{}
	for _, k := range keys {
		freehold.Must(0, m.Put(k, k))
		g[k] = k
	}
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for what, ks := range map[string][]uint64{"hit": keys, "miss": others} {
		b.Run(fmt.Sprintf("what=%s/map=go", what), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				benchSum += g[ks[i%benchEntries]]
			}
		})
		b.Run(fmt.Sprintf("what=%s/map=freehold", what), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				v, _ := m.Get(ks[i%benchEntries])
				benchSum += v
			}
		})
	}
}

func BenchmarkGetMany(b *testing.B) {
	keys, _ := benchKeys()
	h := freehold.NewHeap(nil)
	defer h.Close()
	m := New[uint64, uint64](h, nil)
	freehold.Must(0, m.PutMany(keys, keys))
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	var values [16]uint64
	var found [16]bool
	n := 0
	for b.Loop() {
		at := n % (benchEntries - 16)
		m.GetMany(keys[at:at+16], values[:], found[:])
		benchSum += values[0]
		n += 16
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/key")
}

// BenchmarkPut fills maps from empty.
func BenchmarkPut(b *testing.B) {
	keys, _ := benchKeys()
	fill := func(b *testing.B, put func(k uint64), next func()) {
		n := 0
		for b.Loop() {
			if n == len(keys) {
				next()
				n = 0
			}
			put(keys[n])
			n++
		}
	}
	b.Run("map=go", func(b *testing.B) {
		g := map[uint64]uint64{}
		fill(b, func(k uint64) { g[k] = k }, func() { g = map[uint64]uint64{} })
	})
	b.Run("map=freehold", func(b *testing.B) {
		h := freehold.NewHeap(nil)
		defer h.Close()
		m := New[uint64, uint64](h, nil)
		fill(b, func(k uint64) { m.Put(k, k) }, func() {
			m.Close()
			m = New[uint64, uint64](h, nil)
		})
	})
}

// BenchmarkClear is of a map of one entry that has had many.
func BenchmarkClear(b *testing.B) {
	keys, _ := benchKeys()
	h := freehold.NewHeap(nil)
	defer h.Close()
	m, s, g := New[uint64, uint64](h, nil), NewShared[uint64, uint64](h, nil), map[uint64]uint64{}
	for _, k := range keys {
		freehold.Must(0, m.Put(k, k))
		freehold.Must(0, s.Put(k, k))
		g[k] = k
	}
	m.Clear()
	s.Clear()
	clear(g)
	b.Run("map=go", func(b *testing.B) {
		for b.Loop() {
			g[1] = 1
			clear(g)
		}
	})
	b.Run("map=freehold", func(b *testing.B) {
		for b.Loop() {
			m.Put(1, 1)
			m.Clear()
		}
	})
	b.Run("map=freehold empty", func(b *testing.B) {
		for b.Loop() {
			m.Clear()
		}
	})
	b.Run("map=shared", func(b *testing.B) {
		for b.Loop() {
			s.Put(1, 1)
			s.Clear()
		}
	})
}

// BenchmarkStrings has keys of 16 B, which both maps hold in memory of their own, and
// values of 16 B.
func BenchmarkStrings(b *testing.B) {
	keys, _ := benchKeys()
	var texts []string
	for _, k := range keys {
		texts = append(texts, fmt.Sprintf("%016x", k))
	}
	h := freehold.NewHeap(nil)
	defer h.Close()
	m, g := New[string, [2]uint64](h, nil), map[string][2]uint64{}
	for _, s := range texts {
		freehold.Must(0, m.Put(s, [2]uint64{1, 2}))
		g[string([]byte(s))] = [2]uint64{1, 2}
	}
	rand.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
	b.Run("what=hit/map=go", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			benchSum += g[texts[i%benchEntries]][0]
		}
	})
	b.Run("what=hit/map=freehold", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			v, _ := m.Get(texts[i%benchEntries])
			benchSum += v[0]
		}
	})
}
