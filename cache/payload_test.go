package cache

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/freehold-go/freehold"
)

// payloadOver fills c with distinct keys and values of the sizes that size returns, until it has
// taken three times its bound. It returns the bytes of the live keys and values over the bound.
func payloadOver(t testing.TB, c *Cache, size func(i int) int) float64 {
	bound := c.Stats().MaxBytes
	live, value := 0, make([]byte, c.MaxEntry())
	c.options.OnEvict = func(key []byte, e Entry, _ Reason) { live -= len(key) + len(e.Value) }
	for i, set := 0, 0; set < 3*bound; i++ {
		key := fmt.Appendf(nil, "key %08d", i)
		if err := c.Set(key, value[:size(i)]); err != nil {
			t.Fatalf("Set %d of %d bytes: %v", i, size(i), err)
		}
		live += len(key) + size(i)
		set += len(key) + size(i)
	}
	if st := c.Stats(); st.Reserved > bound {
		t.Errorf("%d bytes of at most %d", st.Reserved, bound)
	}
	return float64(live) / float64(bound)
}

// TestPayload: most of a full cache are keys and values, whatever their size and the parent.
func TestPayload(t *testing.T) {
	most := 30
	if testing.Short() {
		most = 24
	}
	for _, parent := range []freehold.Allocator{freehold.Pages(), newHeap(t)} {
		for shift := 20; shift <= most; shift += 2 {
			bound, row := 1<<shift, ""
			for _, size := range []int{16, 100, 500, 1000, 2100, 3000, 5000, 8300, 13_200, 16_400, 17_000, 30_000, 66_000, 130_000, 250_000, 1 << 20} {
				if size > bound/8 {
					break
				}
				c := New(parent, &Options{MaxBytes: bound})
				share := payloadOver(t, c, func(int) int { return size })
				c.check()
				c.Close()
				row += fmt.Sprintf("  %d: %.3f", size, share)
				if size >= 500 && size <= bound/shardSegments && share < 0.85 {
					t.Errorf("%v: %.3f of %d bytes are keys and values of %d bytes", parent, share, bound, size)
				}
			}
			t.Logf("%v, %d MiB:%s", parent, bound>>20, row)
		}
	}
}

// TestPayloadOfManySizes: a full cache with values of all sizes up to a hundredth of it seldom asks
// its parent for memory.
func TestPayloadOfManySizes(t *testing.T) {
	asked := 0
	c := New(countedAllocs{newHeap(t), &asked}, &Options{MaxBytes: 4 << 20})
	defer c.Close()
	r := rand.New(rand.NewPCG(1, 1))
	share := payloadOver(t, c, func(int) int { return r.IntN(40_000) })
	c.check()
	sets, before := c.Stats().Sets, asked
	payloadOver(t, c, func(int) int { return r.IntN(40_000) })
	if n := c.Stats().Sets - sets; share < 0.70 || asked-before > int(n)/4 {
		t.Errorf("%.3f of the bound are keys and values, and %d sets asked for memory %d times", share, n, asked-before)
	}
}

// countedAllocs counts the calls of Alloc.
type countedAllocs struct {
	freehold.Allocator
	n *int
}

func (a countedAllocs) Alloc(size, align int) ([]byte, error) {
	*a.n++
	return a.Allocator.Alloc(size, align)
}
