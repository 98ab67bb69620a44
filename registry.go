// Registry: the heaps that are open.

package freehold

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// registry holds the open heaps, each with its place in the order of making. A
// heap that is dropped without Close stays: it keeps its memory.
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

// AllStats returns the Stats of all open heaps in the order of their making:
// [Default] first, [Pages] if it was called, and those that were dropped without
// Close, which keep their memory. What all of them hold together is a sum:
//
//	var total freehold.Stats
//	for _, st := range freehold.AllStats() {
//		total.LiveBytes += st.LiveBytes
//		total.Committed += st.Committed
//	}
//
// It costs a call of Stats for each heap. NewHeap and Close wait for it.
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
