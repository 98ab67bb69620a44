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
	room  int // for so many entries from the beginning
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
		f, at := field[uint64]{peers: numbers, keys: order.numbers, n: n}, [...]string{"", "entries=1M/", "entries=100k/"}[i]
		f.run(b, at+"op=insert", insert)
		f.run(b, at+"op=hit", hit)
		f.run(b, at+"op=miss", miss)
		f.run(b, at+"op=many", many)
		f.run(b, at+"op=scan", scan)
		f.run(b, at+"op=delete", remove)
		f.run(b, at+"op=churn", churn)
		f.run(b, at+"op=held", held)
		f.room = n
		f.run(b, at+"op=insert-reserved", insert)
	}
	f := field[uint64]{peers: numbers, keys: order.numbers, n: measure.Size().Entries * 3 / 10}
	f.run(b, "entries=3M/op=worst", worst)
}

func BenchmarkStrings(b *testing.B) {
	f := fieldOfTexts(texts, measure.Size().Entries)
	f.run(b, "op=insert", insert)
	f.run(b, "op=hit", hit)
	f.run(b, "op=miss", miss)
	f.run(b, "op=held", held)
	f.run(b, "op=collect", collect)
	fieldOfTexts(texts, measure.Size().FullEntries).run(b, "op=collect-full", collect)
}

// fieldOfTexts has room, as some peers must know how much to take.
func fieldOfTexts(peers []peer[string], n int) field[string] {
	return field[string]{peers, order.texts, n, n}
}

// BenchmarkTexts has values of 16 B that are copied too, and reads them.
func BenchmarkTexts(b *testing.B) {
	f := fieldOfTexts(textsToTexts, measure.Size().Entries)
	f.run(b, "op=insert", insert)
	f.run(b, "op=hit", hit)
	f.run(b, "op=miss", miss)
	f.run(b, "op=many", many)
	f.run(b, "op=scan", scan)
	f.run(b, "op=held", held)
	fieldOfTexts(textsToTexts, measure.Size().Entries/5).run(b, "entries=2M/op=hit", hit)
}

func BenchmarkOrdered(b *testing.B) {
	sizes := measure.Size().Numbers
	for i, n := range sizes[:2] {
		f, at := field[uint64]{peers: ordered, keys: order.numbers, n: n}, [...]string{"", "entries=1M/"}[i]
		f.run(b, at+"op=insert", insert)
		f.run(b, at+"op=get", hit)
		f.run(b, at+"op=scan", scan)
		f.run(b, at+"op=churn", churn)
		f.run(b, at+"op=held", held)
	}
}

// BenchmarkIntern interns strings: one copy of each is kept.
func BenchmarkIntern(b *testing.B) {
	f := fieldOfTexts(interned, measure.Size().Entries/2)
	f.run(b, "op=new", insert)
	f.run(b, "op=known", known)
	f.run(b, "op=held", held)
}

// BenchmarkShared is of a map that two goroutines use at once.
func BenchmarkShared(b *testing.B) {
	for i, n := range measure.Size().Shared {
		f, size := field[uint64]{peers: shared, keys: order.numbers, n: n}, [...]string{"op=small", "op=large"}[i]
		f.run(b, size, share[uint64](2, 90, 5))
		f.run(b, size+"/get=50", share[uint64](2, 50, 25))
	}
}

// BenchmarkSharedBytes has values of 128 B, and reads the first and the last byte of each.
func BenchmarkSharedBytes(b *testing.B) {
	f := fieldOfTexts(sharedBytes, measure.Size().Shared[1]/2)
	f.run(b, "goroutines=1", share[string](1, 90, 0))
	f.run(b, "goroutines=2", share[string](2, 90, 0))
}

// fill puts n keys in order.
func (f field[K]) fill(p peer[K], keys source[K], n int) container[K] {
	c := p.fresh(min(n, f.room))
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

// worst fills a container and times each put: the slowest of 10,000, and of all.
func worst[K any](b *testing.B, f field[K], p peer[K]) {
	c, took := p.fresh(f.room), make([]uint32, f.n)
	keys := f.keys(order{n: uint64(f.n)})
	for i := range took {
		took[i] = 1 // touches it
	}
	measure.Once(b, f.n, func() {
		last := time.Now()
		keys.each(f.n, func(i int, batch []K) {
			for j, k := range batch {
				c.put(k, uint64(i+j))
				now := time.Now()
				took[i+j] = uint32(now.Sub(last))
				last = now
			}
		})
	})
	keep(c)
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)-1-len(took)/10_000]), "p99.99-ns")
	b.ReportMetric(float64(took[len(took)-1]), "ns/op")
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

// share gets in some of 100 operations, deletes in others and puts in the rest. All keys are
// equally likely. Without deletions all are there. With equal puts and deletions, half are.
func share[K any](goroutines, gets, deletes int) operation[K] {
	return func(b *testing.B, f field[K], p peer[K]) {
		c, among := f.filled(p), uint64(f.n)
		if deletes > 0 {
			among *= 2
		}
		measure.Loops(b, goroutines, 1, func(i int) measure.Loop {
			rnd, keys := measure.Random(i+1), f.keys(order{n: among, random: true, seed: i + 1})
			var choices [batchKeys]byte
			return func(n int) uint64 {
				keys.each(n, func(_ int, batch []K) {
					for i := range batch {
						switch choice := int(rnd.Next() >> 32 % 100); {
						case choice < gets:
							choices[i] = 0
						case choice < 100-deletes:
							choices[i] = 1
						default:
							choices[i] = 2
						}
					}
					c.do(batch, choices[:])
				})
				return uint64(n)
			}
		})
		keep(c)
	}
}
