package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/freehold-go/freehold"
)

// run makes changes until ctx is done, and frees all.
func run(ctx context.Context) {
	cache := freehold.NewHeap(&freehold.HeapOptions{Name: "cache", MaxBytes: 48 << 20})
	defer cache.Close()
	index := freehold.NewHeap(&freehold.HeapOptions{Name: "index"})
	defer index.Close()

	random := rand.New(rand.NewPCG(1, 2))
	var values, nodes [][]byte // the index's in Go memory, as this is an example
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for rising := true; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for range 200 {
			values = put(cache, random, values)
		}
		for range 2000 {
			if rising {
				nodes = insert(index, random, nodes)
			} else {
				nodes = remove(index, random, nodes)
			}
		}
		switch {
		case len(nodes) >= 300_000:
			rising = false
		case len(nodes) < 50_000:
			rising = true
		}
	}
}

// put adds a value to a cache. If the heap is at its limit, it evicts others first.
func put(cache *freehold.Heap, random *rand.Rand, values [][]byte) [][]byte {
	size := 100 + random.IntN(8000)
	for range 16 {
		b, err := cache.Alloc(size, 8)
		if err == nil {
			clear(b)
			return append(values, b)
		}
		values = remove(cache, random, values)
	}
	return values
}

// insert adds a node to an index.
func insert(index *freehold.Heap, random *rand.Rand, nodes [][]byte) [][]byte {
	b, err := index.Alloc(32<<random.IntN(4), 8)
	if err != nil {
		return nodes
	}
	clear(b)
	return append(nodes, b)
}

// remove frees one of some blocks.
func remove(h *freehold.Heap, random *rand.Rand, blocks [][]byte) [][]byte {
	if len(blocks) == 0 {
		return blocks
	}
	i, last := random.IntN(len(blocks)), len(blocks)-1
	h.Free(blocks[i])
	blocks[i] = blocks[last]
	return blocks[:last]
}
