// Registry: the heaps that are open.

package freehold

import "github.com/freehold-go/freehold/internal/heap"

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
// In FREEHOLD_DEBUG=leak a heap dropped without Close is left out once that was reported.
//
// It costs a call of Stats for each heap. NewHeap and Close block while it runs.
func AllStats() []Stats {
	var all []Stats
	heap.EachOpen(func(h *heap.Heap) { all = append(all, statsOf(h.Stats())) })
	return all
}
