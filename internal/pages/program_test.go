// Random programs: after each call the heap's invariants hold.

package pages

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/freehold-go/freehold/internal/test/runs"
	"github.com/freehold-go/freehold/internal/vm"
)

// After each call of a random program the invariants hold and blocks have their bytes. In the
// end nothing is left.
func TestRandomRuns(t *testing.T) {
	const mostPages = 300
	calls := 5000
	if testing.Short() {
		calls = 2000
	}
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 0))
		h := newHeap(t, Options{HugePages: seed == 2})
		runs.Program{
			Calls: calls, MostLive: 100, Aligns: 17,
			Size:   func() int { return 1 + r.IntN(1<<r.IntN(bits.Len(mostPages*PageBytes))) },
			Advise: func(b []byte) { Advise(b, vm.Random) },
			Check:  func() { h.check(t) },
		}.Run(t, r, h)
		if h.pages.dirty != 0 || h.pages.large.Blocks != 0 {
			t.Errorf("%d pages are dirty after Trim, and %d blocks live", h.pages.dirty, h.pages.large.Blocks)
		}
	}
}
