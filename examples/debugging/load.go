package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
)

// run changes the cache and the index until ctx is done. Then it frees all memory.
func run(ctx context.Context) error {
	b, err := budget.Start(&budget.Options{Limit: 256 << 20}) // small, as the load is
	if err != nil {
		return err
	}
	defer b.Stop()
	process := b.Account()
	defer process.Close()
	cache := budget.NewAccount(process, &budget.AccountOptions{Name: "cache", MaxBytes: 48 << 20})
	index := budget.NewAccount(process, &budget.AccountOptions{Name: "index", Soft: 96 << 20})
	values := &part{a: freehold.NewTagged(cache, "values")}
	entries := freehold.NewTagged(index, "entries")
	parts := []*part{{a: entries}, {a: freehold.NewTagged(entries, "keys")}}

	random := rand.New(rand.NewPCG(1, 2))
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for rising := true; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for range 200 {
			values.put(random)
		}
		for range 1000 {
			for _, p := range parts {
				if rising {
					p.insert(random)
				} else {
					p.remove(random)
				}
			}
		}
		switch n := len(parts[0].blocks); {
		case n >= 150_000:
			rising = false
		case n < 25_000:
			rising = true
		}
	}
}

// part is the blocks of one tag. The list is Go memory, to keep the example short.
type part struct {
	a      *freehold.Tagged
	blocks [][]byte
}

// put adds a value to a cache. If the heap is at its limit, it evicts others first.
func (p *part) put(random *rand.Rand) {
	size := 100 + random.IntN(8000)
	for range 16 {
		if p.alloc(size) {
			return
		}
		p.remove(random)
	}
}

// insert adds a node or a key to an index.
func (p *part) insert(random *rand.Rand) { p.alloc(32 << random.IntN(4)) }

func (p *part) alloc(size int) bool {
	b, err := p.a.Alloc(size, 8)
	if err != nil {
		return false
	}
	clear(b)
	p.blocks = append(p.blocks, b)
	return true
}

// remove frees a random block.
func (p *part) remove(random *rand.Rand) {
	if len(p.blocks) == 0 {
		return
	}
	i, last := random.IntN(len(p.blocks)), len(p.blocks)-1
	p.a.Free(p.blocks[i])
	p.blocks[i] = p.blocks[last]
	p.blocks = p.blocks[:last]
}
