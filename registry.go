// Registry: the heaps that are open.

package freehold

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// registry holds the open heaps, each with its number in order of creation. A heap
// dropped without Close stays in it, since it keeps its memory.
var registry = struct {
	mu   sync.Mutex
	open map[*Heap]int
	made int
}{open: map[*Heap]int{}}

func register(h *Heap) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	registry.open[h] = registry.made
	registry.made++
}

func unregister(h *Heap) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	delete(registry.open, h)
}

// AllStats returns the Stats of all open heaps in order of creation: [Default]
// first. They include [Pages] if it was called, and heaps dropped without Close,
// which keep their memory. Add them up for the total:
//
//	var total freehold.Stats
//	for _, st := range freehold.AllStats() {
//		total.LiveBytes += st.LiveBytes
//		total.Committed += st.Committed
//	}
//
// It costs a call of Stats for each heap. NewHeap and Close block while it runs.
func AllStats() []Stats {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	heaps := slices.SortedFunc(maps.Keys(registry.open), func(g, h *Heap) int {
		return cmp.Compare(registry.open[g], registry.open[h])
	})
	all := make([]Stats, len(heaps))
	for i, h := range heaps {
		all[i] = h.Stats()
	}
	return all
}
