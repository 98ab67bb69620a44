package pool_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/pool"
)

type object [64]byte

var kept *object

// BenchmarkPair is a get, a write to the first byte and a put of 64 B.
func BenchmarkPair(b *testing.B) {
	b.Run("go-new", func(b *testing.B) {
		for range b.N {
			kept = new(object)
			kept[0] = 1
		}
	})
	b.Run("sync.Pool", func(b *testing.B) {
		p := sync.Pool{New: func() any { return new(object) }}
		for range b.N {
			o := p.Get().(*object)
			o[0] = 1
			p.Put(o)
		}
	})
	b.Run("heap", func(b *testing.B) {
		h := freehold.NewHeap(nil)
		defer h.Close()
		for range b.N {
			o, err := h.Alloc(64, 8)
			if err != nil {
				b.Fatal(err)
			}
			o[0] = 1
			h.Free(o)
		}
	})
	p := pool.New[object](freehold.Default(), nil)
	defer p.Close()
	for range 7 {
		freehold.Must(p.Get())
	}
	b.Run("pool", func(b *testing.B) { pairs(b, p) })
	b.Run("cache", func(b *testing.B) { cachePairs(b, p) })
	k := pool.NewBlocks(freehold.Default(), 64, 8, nil)
	defer k.Close()
	b.Run("blocks", func(b *testing.B) { blocksPairs(b, k) })
	for name, pins := range map[string]bool{"leaf": false, "pin": true} {
		b.Run("pool/path="+name, func(b *testing.B) {
			defer pool.Plain(pins)()
			pairs(b, p)
		})
		b.Run("blocks/path="+name, func(b *testing.B) {
			defer pool.Plain(pins)()
			blocksPairs(b, k)
		})
	}
}

func blocksPairs(b *testing.B, k *pool.Blocks) {
	for range b.N {
		o, err := k.Alloc(64, 8)
		if err != nil {
			b.Fatal(err)
		}
		o[0] = 1
		k.Free(o)
	}
}

func pairs(b *testing.B, p *pool.Pool[object]) {
	for range b.N {
		o, err := p.Get()
		if err != nil {
			b.Fatal(err)
		}
		o[0] = 1
		p.Put(o)
	}
}

func cachePairs(b *testing.B, p *pool.Pool[object]) {
	c := p.NewCache()
	defer c.Close()
	for range b.N {
		o, err := c.Get()
		if err != nil {
			b.Fatal(err)
		}
		o[0] = 1
		c.Put(o)
	}
}

// BenchmarkPairTwo is BenchmarkPair on two goroutines at once. The figure is the time of a
// pair of one goroutine.
func BenchmarkPairTwo(b *testing.B) {
	two := func(b *testing.B, body func(*testing.B)) {
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { body(b) })
		}
		wg.Wait()
	}
	b.Run("go-new", func(b *testing.B) {
		two(b, func(b *testing.B) {
			var o *object
			for range b.N {
				o = new(object)
				o[0] = 1
				runtime.KeepAlive(&o)
			}
		})
	})
	p := pool.New[object](freehold.Default(), nil)
	defer p.Close()
	b.Run("pool", func(b *testing.B) { two(b, func(b *testing.B) { pairs(b, p) }) })
	b.Run("cache", func(b *testing.B) { two(b, func(b *testing.B) { cachePairs(b, p) }) })
}

// BenchmarkScatter is a get and a put of one of 10,000 values, which are put in another
// order than they were got.
func BenchmarkScatter(b *testing.B) {
	p := pool.New[object](freehold.Default(), nil)
	defer p.Close()
	order := rand.New(rand.NewPCG(1, 2)).Perm(10000)
	values := make([]*object, len(order))
	for n := 0; n < b.N; n += len(order) {
		for i := range values {
			values[i] = freehold.Must(p.Get())
			values[i][0] = 1
		}
		for _, i := range order {
			p.Put(values[i])
		}
	}
}

// BenchmarkHandle is a Lookup of a live value, and a guard entered and left.
func BenchmarkHandle(b *testing.B) {
	p := pool.New[object](freehold.Default(), nil)
	defer p.Close()
	h := p.Handle(freehold.Must(p.Get()))
	b.Run("Lookup", func(b *testing.B) {
		for range b.N {
			kept, _ = p.Lookup(h)
		}
	})
	b.Run("Enter", func(b *testing.B) {
		for range b.N {
			p.Enter().Leave()
		}
	})
	b.Run("Retire", func(b *testing.B) {
		for range b.N {
			p.Retire(freehold.Must(p.Get()))
		}
	})
}

// BenchmarkCacheOrder is a get and a put of one of 64 values, by a Cache: put in the order
// of the gets, at random, and by the Cache of another goroutine.
func BenchmarkCacheOrder(b *testing.B) {
	p := pool.New[object](freehold.Default(), nil)
	defer p.Close()
	inOrder := make([]int, 64)
	for i := range inOrder {
		inOrder[i] = i
	}
	order := func(b *testing.B, order []int) {
		c := p.NewCache()
		defer c.Close()
		values := make([]*object, len(order))
		for n := 0; n < b.N; n += len(order) {
			for i := range values {
				values[i] = freehold.Must(c.Get())
				values[i][0] = 1
			}
			for _, i := range order {
				c.Put(values[i])
			}
		}
	}
	b.Run("fifo", func(b *testing.B) { order(b, inOrder) })
	b.Run("random", func(b *testing.B) { order(b, rand.New(rand.NewPCG(1, 2)).Perm(64)) })
	b.Run("handed", func(b *testing.B) {
		const batch = 64
		over := make(chan []*object, 16)
		go func() {
			c := p.NewCache()
			defer c.Close()
			defer close(over)
			for n := 0; n < b.N; n += batch {
				values := make([]*object, batch)
				for i := range values {
					values[i] = freehold.Must(c.Get())
				}
				over <- values
			}
		}()
		c := p.NewCache()
		defer c.Close()
		for values := range over {
			for _, v := range values {
				c.Put(v)
			}
		}
	})
}

// BenchmarkBatch is a get and a put of a block of 64 B, in batches: got by GetBatch, and put
// one by one or by PutBatch.
func BenchmarkBatch(b *testing.B) {
	k := pool.NewBlocks(freehold.Default(), 64, 8, nil)
	defer k.Close()
	batches := func(b *testing.B, n int, put func([][]byte)) {
		blocks := make([][]byte, n)
		for done := 0; done < b.N; done += n {
			freehold.Must(k.GetBatch(blocks))
			put(blocks)
		}
	}
	for _, n := range []int{32, 1000} {
		b.Run(fmt.Sprintf("blocks=%d/put=one", n), func(b *testing.B) {
			batches(b, n, func(blocks [][]byte) {
				for _, r := range blocks {
					k.Free(r)
				}
			})
		})
		b.Run(fmt.Sprintf("blocks=%d/put=batch", n), func(b *testing.B) { batches(b, n, k.PutBatch) })
	}
}
