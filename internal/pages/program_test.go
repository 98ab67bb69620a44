// Random programs: after each call the heap's invariants hold.

package pages

import (
	"math/bits"
	"math/rand/v2"
	"testing"
)

// After each call of a random program the invariants hold and blocks have their bytes. In the
// end nothing is left.
func TestRandomRuns(t *testing.T) {
	const mostPages, mostLive = 300, 100
	calls := 5000
	if testing.Short() {
		calls = 2000
	}
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 0))
		h := newHeap(t, Options{HugePages: seed == 2})
		var live [][]byte
		mark := func(b []byte) []byte {
			b[0], b[len(b)-1] = byte(len(b)), byte(len(b))
			return b
		}
		for range calls {
			i, size := 0, 1+r.IntN(1<<r.IntN(bits.Len(mostPages*PageBytes)))
			if len(live) > 0 {
				i = r.IntN(len(live))
			}
			switch op := r.IntN(200); {
			case op == 0:
				h.Trim()
			case op < 3:
				h.Tick()
			case op < 20 && len(live) > 0:
				if b, ok := h.Resize(live[i], size); ok {
					live[i] = mark(b)
				}
			case len(live) == mostLive || op < 100 && len(live) > 0:
				if b := live[i]; b[0] != byte(len(b)) || b[len(b)-1] != byte(len(b)) {
					t.Fatalf("a block of %d bytes has changed", len(b))
				}
				h.Free(live[i])
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
			default:
				zero := op%2 == 0
				b, err := h.Alloc(size, 1<<r.IntN(17), zero)
				if err != nil || zero && !allSet(b, 0) {
					t.Fatalf("%d bytes: %v", size, err)
				}
				live = append(live, mark(b))
			}
			h.check(t)
		}
		for _, b := range live {
			h.Free(b)
		}
		h.Trim()
		if h.check(t); h.pages.dirty != 0 || h.pages.large.Blocks != 0 {
			t.Errorf("%d pages are dirty after Trim, and %d blocks live", h.pages.dirty, h.pages.large.Blocks)
		}
	}
}
