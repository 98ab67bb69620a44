package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
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

// TestPayloadOfManySizes: a full cache with values of all sizes up to most seldom asks its parent
// for memory, and most of it are keys and values.
func TestPayloadOfManySizes(t *testing.T) {
	const times = 4
	for _, tt := range []struct {
		bound, most int
		least       float64 // mean of the times
	}{{4 << 20, 40_000, 0.80}, {64 << 20, 64 << 10, 0.83}} {
		mean := 0.0
		for seed := range uint64(times) {
			asked := 0
			c := New(countedAllocs{newHeap(t), &asked}, &Options{MaxBytes: tt.bound})
			r := rand.New(rand.NewPCG(seed, 1))
			size := func(int) int { return r.IntN(tt.most) }
			mean += payloadOver(t, c, size) / times
			c.check()
			sets, before := c.Stats().Sets, asked
			payloadOver(t, c, size)
			if n := c.Stats().Sets - sets; asked-before > int(n)/3 {
				t.Errorf("%d MiB: %d sets asked for memory %d times", tt.bound>>20, n, asked-before)
			}
			c.Close()
		}
		if t.Logf("%d MiB: %.3f", tt.bound>>20, mean); mean < tt.least {
			t.Errorf("%.3f of %d MiB are keys and values of up to %d bytes, want %.2f", mean, tt.bound>>20, tt.most, tt.least)
		}
	}
}

// TestRests: large items fill the rests of sealed segments. A segment that is emptied takes no
// copies of its own items.
func TestRests(t *testing.T) {
	c := newCache(t, Options{MaxBytes: MinBytes})
	s := &c.shards[0]
	r := rand.New(rand.NewPCG(1, 1))
	value := make([]byte, 4*c.largeBytes)
	set := func() {
		if err := c.Set(fmt.Append(nil, r.Uint64()), value[:c.largeBytes+r.IntN(3*c.largeBytes)]); err != nil {
			t.Fatal(err)
		}
	}
	filled, emptied := 0, 0
	for range 5000 {
		set()
		n := s.rests[r.IntN(len(s.rests))]
		rest := s.restOf(n)
		set()
		if n == 0 || !slices.Contains(s.rests[:], n) {
			continue
		}
		if s.restOf(n) < rest {
			filled++
		}
		if r.IntN(4) == 0 {
			s.mu.Lock()
			live, copied := s.segs.at(n).live, s.copied
			s.evacuate(n, rule{}, Room) // all items stay, if there is memory for copies
			s.mu.Unlock()
			if emptied++; s.copied-copied >= uint64(live)+uint64(c.largeBytes) {
				t.Fatalf("%d bytes copied of %d", s.copied-copied, live)
			}
		}
	}
	if filled < 10 || emptied < 50 {
		t.Errorf("%d rests filled, %d segments emptied", filled, emptied)
	}
	c.check()
}

// TestMixes: sizes vary if large items do, whatever small items do.
func TestMixes(t *testing.T) {
	c := newCache(t, Options{})
	s := &c.shards[0]
	large := c.segmentBytes/fittedShare + 1
	for _, tt := range []struct {
		one, two int
		want     bool
	}{{1, large - 1, false}, {large, 2 * large, true}, {1, large - 1, true}, {large, large, false}} {
		for range mostMixed {
			s.mixes(tt.one)
			s.mixes(tt.two)
		}
		if s.isMixed() != tt.want {
			t.Errorf("after items of %d and %d bytes: %t", tt.one, tt.two, s.isMixed())
		}
	}
}

// TestScoreOf: scores of large segments do not overflow 32 bits.
func TestScoreOf(t *testing.T) {
	if got := scoreOf(mostRunBytes, 2*mostRunBytes); got != wholeScore/2 {
		t.Errorf("%d, want %d", got, wholeScore/2)
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
