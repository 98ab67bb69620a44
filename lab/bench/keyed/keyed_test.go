package keyed

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/freehold-go/freehold/lab/bench/measure"
)

// A field is containers of one kind with their keys.
type field[K any] struct {
	peers []peer[K]
	keys  func(o order) source[K]
	n     int // entries
}

// An operation measures one container.
type operation[K any] func(b *testing.B, f field[K], p peer[K])

func (f field[K]) run(b *testing.B, name string, do operation[K]) {
	for _, p := range f.peers {
		measure.Run(b, name, p.name, func(b *testing.B) { do(b, f, p) })
	}
}

func BenchmarkNumbers(b *testing.B) {
	for i, n := range measure.Size().Numbers {
		f, at := field[uint64]{numbers, order.numbers, n}, [...]string{"", "entries=1M/", "entries=100k/"}[i]
		f.run(b, at+"op=insert", insert)
		f.run(b, at+"op=hit", hit)
		f.run(b, at+"op=miss", miss)
		f.run(b, at+"op=many", many)
		f.run(b, at+"op=scan", scan)
		f.run(b, at+"op=delete", remove)
		f.run(b, at+"op=churn", churn)
		f.run(b, at+"op=worst", worst)
		f.run(b, at+"op=held", held)
	}
}

func BenchmarkStrings(b *testing.B) {
	f := field[string]{texts, order.texts, measure.Size().Entries}
	f.run(b, "op=insert", insert)
	f.run(b, "op=hit", hit)
	f.run(b, "op=miss", miss)
	f.run(b, "op=held", held)
	f.run(b, "op=collect", collect)
	f.n = measure.Size().FullEntries
	f.run(b, "op=collect-full", collect)
}

// BenchmarkTexts has values of 16 B that are copied too, and reads them.
func BenchmarkTexts(b *testing.B) {
	f := field[string]{textsToTexts, order.texts, measure.Size().Entries}
	f.run(b, "op=insert", insert)
	f.run(b, "op=hit", hit)
	f.run(b, "op=miss", miss)
	f.run(b, "op=many", many)
	f.run(b, "op=scan", scan)
	f.run(b, "op=held", held)
}

func BenchmarkOrdered(b *testing.B) {
	f := field[uint64]{ordered, order.numbers, measure.Size().Entries}
	f.run(b, "op=insert", insert)
	f.run(b, "op=get", hit)
	f.run(b, "op=scan", scan)
	f.run(b, "op=churn", churn)
	f.run(b, "op=held", held)
}

// BenchmarkIntern interns strings: one copy of each is kept.
func BenchmarkIntern(b *testing.B) {
	f := field[string]{interned, order.texts, measure.Size().Entries / 2}
	f.run(b, "op=new", insert)
	f.run(b, "op=known", known)
	f.run(b, "op=held", held)
}

// BenchmarkShared is of a map that two goroutines use at once.
func BenchmarkShared(b *testing.B) {
	for i, n := range measure.Size().Shared {
		f := field[uint64]{shared, order.numbers, n}
		f.run(b, [...]string{"op=small", "op=large"}[i], share[uint64](2, 5))
	}
}

// BenchmarkSharedBytes has values of 128 B, and reads the first and the last byte of each.
func BenchmarkSharedBytes(b *testing.B) {
	f := field[string]{sharedBytes, order.texts, measure.Size().Shared[1] / 2}
	f.run(b, "goroutines=1", share[string](1, 0))
	f.run(b, "goroutines=2", share[string](2, 0))
}

// fill puts n keys in order.
func (f field[K]) fill(p peer[K], keys source[K], n int) container[K] {
	c := p.fresh(n)
	keys.each(n, func(i int, batch []K) { c.fill(batch, uint64(i)) })
	return c
}

// filled returns a container of f.n entries. It collects what growing has left, which would be in
// the time.
func (f field[K]) filled(p peer[K]) container[K] {
	c := f.fill(p, f.keys(order{n: uint64(f.n)}), f.n)
	runtime.GC()
	return c
}

// warm fills a small container, so that the code is not cold.
func (f field[K]) warm(p peer[K], n int) { f.fill(p, f.keys(order{n: uint64(n)}), n) }

// insert fills a container, grown from empty.
func insert[K any](b *testing.B, f field[K], p peer[K]) {
	f.warm(p, f.n/100)
	var c container[K]
	keys := f.keys(order{n: uint64(f.n)})
	measure.Once(b, f.n, func() { c = f.fill(p, keys, f.n) })
	keep(c)
	measure.Sum(b, uint64(f.n))
}

func (f field[K]) random() source[K] {
	return f.keys(order{n: uint64(f.n), random: true})
}

// hit gets keys at random. All of them are there.
func hit[K any](b *testing.B, f field[K], p peer[K]) { look(b, f.filled(p), f.random()) }

// miss gets keys that are not there.
func miss[K any](b *testing.B, f field[K], p peer[K]) {
	look(b, f.filled(p), f.keys(order{from: uint64(f.n), n: uint64(min(f.n, lookups))}))
}

func look[K any](b *testing.B, c container[K], keys source[K]) {
	keys.time(b, func(_ int, batch []K) (sum uint64) { return c.look(batch) })
	keep(c)
}

// time times do on batches of keys.
func (s source[K]) time(b *testing.B, do func(i int, batch []K) (sum uint64)) {
	measure.Loops(b, 1, 1, func(int) measure.Loop {
		return func(n int) (sum uint64) {
			s.each(n, func(i int, batch []K) { sum += do(i, batch) })
			return sum
		}
	})
}

// many gets 16 keys at once, or one by one where the peer knows only that.
func many[K any](b *testing.B, f field[K], p peer[K]) {
	c, keys := f.filled(p), f.random()
	if c.getMany == nil {
		look(b, c, keys)
		return
	}
	var values [16]uint64
	var found [16]bool
	keys.time(b, func(_ int, batch []K) (sum uint64) {
		for part := range slices.Chunk(batch, len(values)) {
			c.getMany(part, values[:len(part)], found[:len(part)])
			for i := range part {
				sum += values[i]
			}
		}
		return sum
	})
	keep(c)
}

// remove deletes all entries, in the order in which they came.
func remove[K any](b *testing.B, f field[K], p peer[K]) {
	c, keys := f.filled(p), f.keys(order{n: uint64(f.n)})
	measure.Once(b, f.n, func() { keys.each(f.n, func(_ int, batch []K) { c.remove(batch) }) })
	keep(c)
	measure.Sum(b, uint64(f.n))
}

// churn deletes the oldest entries and puts new ones, 256 at a time.
func churn[K any](b *testing.B, f field[K], p peer[K]) {
	c, oldest, fresh := f.filled(p), f.keys(order{n: uint64(f.n)}), f.keys(order{from: uint64(f.n)})
	oldest.time(b, func(i int, old []K) uint64 {
		fresh.each(len(old), func(_ int, batch []K) {
			c.remove(old)
			c.fill(batch, uint64(i))
		})
		return uint64(len(old))
	})
	keep(c)
}

// known puts keys that are there.
func known[K any](b *testing.B, f field[K], p peer[K]) {
	c := f.filled(p)
	f.random().time(b, func(_ int, batch []K) uint64 {
		for _, k := range batch {
			c.put(k, 0)
		}
		return uint64(len(batch))
	})
	keep(c)
}

// worst fills a container and times each put. Its figure is the time of the slowest.
func worst[K any](b *testing.B, f field[K], p peer[K]) {
	c, slowest := p.fresh(f.n), time.Duration(0)
	keys := f.keys(order{n: uint64(f.n)})
	measure.Once(b, f.n, func() {
		last := time.Now()
		keys.each(f.n, func(i int, batch []K) {
			for j, k := range batch {
				c.put(k, uint64(i+j))
				now := time.Now()
				slowest = max(slowest, now.Sub(last))
				last = now
			}
		})
	})
	keep(c)
	b.ReportMetric(float64(slowest), "ns/op")
	measure.Sum(b, uint64(f.n))
}

// held measures the resident bytes of a container. Garbage is collected before.
func held[K any](b *testing.B, f field[K], p peer[K]) {
	f.warm(p, 100)
	keys := f.keys(order{n: uint64(f.n)})
	runtime.GC()
	before := measure.Resident(b)
	c := f.fill(p, keys, f.n)
	runtime.GC()
	b.ReportMetric(float64(measure.Grown(b, before))/float64(f.n), "resident-B/entry")
	b.ReportMetric(0, "ns/op")
	keep(c)
	runtime.KeepAlive(keys)
	measure.Sum(b, uint64(f.n))
}

func scan[K any](b *testing.B, f field[K], p peer[K]) {
	c, sum := f.filled(p), uint64(0)
	c.scan()
	measure.Once(b, f.n, func() { sum = c.scan() })
	measure.Sum(b, sum)
}

// collect forces collections while the container is live, and takes the median.
func collect[K any](b *testing.B, f field[K], p peer[K]) {
	const collections = 41 // an odd number has a median
	c := f.filled(p)
	runtime.GC()
	var took []time.Duration
	measure.Once(b, collections, func() {
		for range collections {
			start := time.Now()
			runtime.GC()
			took = append(took, time.Since(start))
		}
	})
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2]), "ns/op")
	keep(c)
	measure.Sum(b, uint64(f.n))
}

// share gets in 90 of 100 operations, puts in others and deletes in some. All keys are equally
// likely. Without deletions all are there. With equal puts and deletions, half are.
func share[K any](goroutines int, deletes uint64) operation[K] {
	return func(b *testing.B, f field[K], p peer[K]) {
		c, among := f.filled(p), uint64(f.n)
		if deletes > 0 {
			among *= 2
		}
		measure.Loops(b, goroutines, 1, func(i int) measure.Loop {
			rnd, keys := measure.Random(i+1), f.keys(order{n: among, random: true, seed: i + 1})
			return func(n int) uint64 {
				keys.each(n, func(_ int, batch []K) {
					for _, k := range batch {
						switch choice := rnd.Next() >> 32 % 100; {
						case choice < deletes:
							c.delete(k)
						case choice < 10:
							c.put(k, choice)
						default:
							c.get(k)
						}
					}
				})
				return uint64(n)
			}
		})
		keep(c)
	}
}
