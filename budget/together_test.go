// Accounts under any number of goroutines.

package budget

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// Any number of goroutines allocate and are charged. No account is above its limit at any moment.
func TestAccountsTogether(t *testing.T) {
	const rounds = 400
	top := newAccount(t, nil, "top", 24<<20)
	middles := []*Account{newAccount(t, top, "m0", 16<<20), newAccount(t, top, "m1", 16<<20)}
	var leaves []*Account
	for i := range 4 {
		leaves = append(leaves, newAccount(t, middles[i%2], "leaf", 10<<20))
	}
	all := slices.Concat([]*Account{top}, middles, leaves)
	look := func() {
		for _, a := range all {
			if st := a.Stats(); st.Used > st.MaxBytes || st.Peak > st.MaxBytes {
				t.Errorf("%+v", st)
			}
		}
	}
	var done atomic.Bool
	var watch, work sync.WaitGroup
	watch.Go(func() {
		for !done.Load() {
			look()
			runtime.Gosched()
		}
	})
	for g := range 4 {
		work.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 2))
			var caches []*fifo
			for _, a := range leaves {
				caches = append(caches, &fifo{account: a})
			}
			for range rounds {
				c := caches[r.IntN(len(caches))]
				switch r.IntN(8) {
				case 0:
					if n := r.Int64N(4 << 20); take(c.account, n) == nil {
						give(c.account, n)
					}
				case 1:
					c.evict(r.IntN(8 << 20))
				default:
					b, err := c.account.AllocOrEvict(1+r.IntN(2<<r.IntN(20)), 8, c.evict)
					if err == nil {
						b[0], b[len(b)-1] = byte(g), byte(g)
						c.live = append(c.live, b)
					}
				}
			}
			for _, c := range caches {
				c.evict(1 << 30)
			}
		})
	}
	work.Wait()
	done.Store(true)
	watch.Wait()
	look()
	top.Trim()
	look()
	for i, a := range all {
		st := a.Stats()
		if st.Live != 0 || i >= 3 && st.Used != st.Committed {
			t.Errorf("%+v", st)
		}
	}
}
