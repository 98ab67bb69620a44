// Registry: the open heaps.

package heap

import (
	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/pages"
)

// registry holds the open heaps. A heap that becomes unreachable without Close keeps its memory, so
// it stays in the registry, unless package owners looks for such heaps.
var registry owners.Registry[Heap, lockrank.Registry]

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
