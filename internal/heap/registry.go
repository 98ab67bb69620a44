// Registry: the heaps that are open, and the last figures of others.

package heap

import (
	"maps"
	"slices"
	"weak"

	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/mode"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/pages"
)

// KeepsClosed is whether the last figures of heaps are kept at Close: FREEHOLD_DEBUG=stats.
var KeepsClosed = mode.On("stats")

// mostClosed is how many closed heaps' figures are kept.
const mostClosed = 1000

// registry holds the open heaps, by number in order of creation. A heap that is dropped without
// Close stays in it, since it keeps its memory. While package owners looks for dropped owners the
// registry has weak pointers, so that the collector finds such a heap.
var registry = struct {
	mu   lockrank.Mutex[lockrank.Registry]
	open map[uint64]reference
	made uint64
}{open: map[uint64]reference{}}

// closed has the last figures of heaps, under a lock of its own: Close holds Scavenging then.
var closed struct {
	mu    lockrank.Mutex[lockrank.Leaf]
	stats []Stats // of at most mostClosed heaps, without their classes
	more  int     // heaps that were closed later
}

// reference is a pointer to a heap, weak while package owners looks for dropped owners.
type reference struct {
	heap *Heap
	weak weak.Pointer[Heap]
}

func (r reference) get() *Heap {
	if r.heap != nil {
		return r.heap
	}
	return r.weak.Value()
}

// EachOpen calls f for each open heap in order of creation. Init and Close of others wait
// meanwhile, so f must not call them.
func EachOpen(f func(*Heap)) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(registry.open)) {
		if h := registry.open[n].get(); h != nil {
			f(h)
		} else {
			delete(registry.open, n)
		}
	}
}

// TrimAll trims each open heap, but for quarantines. Init and Close of others do not wait for it.
func TrimAll() {
	var open []*Heap
	EachOpen(func(h *Heap) { open = append(open, h) })
	for _, h := range open {
		h.tryTrim()
	}
}

// EachPayer calls f for the payer of each open heap that has one. Init and Close of others
// do not wait for it.
func EachPayer(f func(pages.Payer)) {
	var payers []pages.Payer
	EachOpen(func(h *Heap) {
		if p := h.pages.Payer; p != nil {
			payers = append(payers, p)
		}
	})
	for _, p := range payers {
		f(p)
	}
}

func register(h *Heap) {
	r := reference{heap: h}
	if owners.On() {
		r = reference{weak: weak.Make(h)}
	}
	registry.mu.Lock()
	defer registry.mu.Unlock()
	registry.made++
	h.number = registry.made
	registry.open[h.number] = r
}

// unregister is before anything that Close does, so that EachOpen finds no closed heap.
func unregister(h *Heap) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	delete(registry.open, h.number)
}

// keepClosed keeps the figures of a heap that is about to close.
func keepClosed(st Stats) {
	closed.mu.Lock()
	defer closed.mu.Unlock()
	if len(closed.stats) == mostClosed {
		closed.more++
		return
	}
	st.Classes = nil
	closed.stats = append(closed.stats, st)
}

// Closed returns the figures of heaps right before their Close, in the order of their Closes, and
// how many more were closed, whose figures were not kept: see KeepsClosed.
func Closed() (all []Stats, more int) {
	closed.mu.Lock()
	defer closed.mu.Unlock()
	return slices.Clone(closed.stats), closed.more
}
