// Registry: the heaps that are open.

package heap

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// registry holds the open heaps whose blocks may be sampled, each with its number in
// order of creation. A heap dropped without Close stays in it, since it keeps its memory.
var registry = struct {
	mu   sync.Mutex
	open map[*Heap]int
	made int
}{open: map[*Heap]int{}}

// EachOpen calls f for each open heap in order of creation, but for those that are
// Unsampled. Init and Close of others wait meanwhile, so f must not call them.
func EachOpen(f func(*Heap)) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	byAge := func(g, h *Heap) int { return cmp.Compare(registry.open[g], registry.open[h]) }
	for _, h := range slices.SortedFunc(maps.Keys(registry.open), byAge) {
		f(h)
	}
}

func register(h *Heap) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	registry.open[h] = registry.made
	registry.made++
}

// unregister is before anything that Close does, so that EachOpen finds no closed heap.
func unregister(h *Heap) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	delete(registry.open, h)
}
