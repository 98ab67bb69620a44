// Registry: the open heaps, and the last figures of closed ones.

package heap

import (
	"slices"

	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/mode"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/pages"
)

// KeepsClosed reports whether Close keeps a heap's last figures. FREEHOLD_DEBUG=stats sets it.
var KeepsClosed = mode.On("stats")

// mostClosed bounds the closed heaps whose figures are kept.
const mostClosed = 1000

// registry holds the open heaps. A heap that becomes unreachable without Close keeps its memory, so
// it stays in the registry, unless package owners looks for such heaps.
var registry owners.Registry[Heap, lockrank.Registry]

// closed has the last figures of closed heaps. It has a leaf lock, because Close takes it while it
// holds Scavenging.
var closed struct {
	mu    lockrank.Mutex[lockrank.Leaf]
	stats []Stats // of at most mostClosed heaps, without their classes
	more  int     // closed heaps whose figures were not kept
}

// EachOpen calls f for each open heap in order of creation. Init and Close of other heaps wait
// meanwhile, so f must not call them.
func EachOpen(f func(*Heap)) { registry.Each(f) }

// EachPayer calls f for the payer of each open heap that has one. Init and Close of other heaps do
// not wait for it.
func EachPayer(f func(pages.Payer)) {
	for _, h := range registry.All() {
		if p := h.pages.Payer; p != nil {
			f(p)
		}
	}
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

// Closed returns the figures of closed heaps right before their Close, in the order of their
// Closes, and the number of further closed heaps, whose figures were not kept: see KeepsClosed.
func Closed() (all []Stats, more int) {
	closed.mu.Lock()
	defer closed.mu.Unlock()
	return slices.Clone(closed.stats), closed.more
}
