// Eviction: the bytes that a cache is asked for, and requests that fail all the same.

package budget

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
)

// fifo is a cache of blocks of one account.
type fifo struct {
	account *Account
	live    [][]byte
	asked   []int
}

func (c *fifo) evict(bytes int) (freed int) {
	c.asked = append(c.asked, bytes)
	for len(c.live) > 0 && freed < bytes {
		freed += len(c.live[0])
		c.account.Free(c.live[0])
		c.live = c.live[1:]
	}
	return freed
}

func (c *fifo) add(t testing.TB, size int) {
	t.Helper()
	b, err := c.account.AllocOrEvict(size, 8, c.evict)
	if err != nil {
		t.Fatal(err)
	}
	c.live = append(c.live, b)
}

func TestCacheStaysAtItsLimit(t *testing.T) {
	for _, sizes := range [][]int{{100}, {1000}, {40000}, {16, 100, 1000, 10000, 100000}} {
		t.Run(fmt.Sprint(sizes), func(t *testing.T) {
			const limit = 16 << 20
			top := newAccount(t, nil, "top", limit)
			c := &fifo{account: newAccount(t, top, "cache", 0)}
			sum := 0
			for i := range 1 << 18 {
				size := sizes[i%len(sizes)]
				c.add(t, size)
				if sum += size; sum > 3*limit {
					break
				}
			}
			held := 0
			for _, b := range c.live {
				held += len(b)
			}
			st := top.Stats()
			if held < limit*3/4 || st.Peak > limit {
				t.Errorf("holds %d of %d, %+v", held, limit, st)
			}
			if c.account.Stats().Evicted != int64(sum-held) || len(c.asked) == 0 {
				t.Errorf("evicted %d, want %d", c.account.Stats().Evicted, sum-held)
			}
			for _, n := range c.asked {
				if n < limit/evictShare {
					t.Errorf("asked for %d bytes", n)
				}
			}
		})
	}
}

func TestNothingIsEvictedInVain(t *testing.T) {
	top := newAccount(t, nil, "top", 4<<20)
	c := &fifo{account: newAccount(t, top, "cache", 8<<20)}
	for range 3 {
		c.add(t, 1<<20)
	}
	for _, size := range []int{4 << 20, 4<<20 + 1} { // the limit leaves no room for bookkeeping, or less
		_, err := c.account.AllocOrEvict(size, 8, c.evict)
		wantFull(t, err, top)
	}
	_, err := c.account.AllocOrEvict(math.MaxInt/2, 8, c.evict)
	if err == nil || len(c.asked) != 0 {
		t.Errorf("%v, asked %v", err, c.asked)
	}
	for _, limit := range []int64{0, math.MaxInt64} { // what the system does not have
		a := newAccount(t, nil, "a", limit)
		if _, err := a.AllocOrEvict(math.MaxInt/2, 8, c.evict); err == nil || isFull(err) || len(c.asked) != 0 {
			t.Errorf("%v, asked %v", err, c.asked)
		}
	}
}

func TestEvictWithNothingToEvict(t *testing.T) {
	top := newAccount(t, nil, "top", 4<<20)
	other := newAccount(t, top, "other", 0)
	mustAlloc(t, other, 3<<20)
	c := &fifo{account: newAccount(t, top, "cache", 0)}
	_, err := c.account.AllocOrEvict(2<<20, 8, c.evict)
	wantFull(t, err, top)
	if len(c.asked) != 1 || c.asked[0] != 2<<20 {
		t.Errorf("asked %v", c.asked)
	}
	_, err = c.account.AllocOrEvict(2<<20, 8, func(int) int { return -1 })
	wantFull(t, err, top)
}

// An evict that returns more bytes than it has freed is called again until these bytes are four
// times the block's, or an eighth of the limit.
func TestEvictThatLies(t *testing.T) {
	const limit = 8 << 20
	a := newAccount(t, nil, "a", limit)
	for err := error(nil); err == nil; {
		_, err = a.Alloc(64<<10, 8)
	}
	for _, tt := range []struct{ size, lie, calls int }{
		{1000 << 10, 1, 4000 << 10 / evictLeast},
		{1000 << 10, 1 << 20, 4},
		{1000 << 10, math.MaxInt, 1},
		{100 << 10, 256 << 10, 4},
	} {
		var asked []int
		_, err := a.AllocOrEvict(tt.size, 8, func(n int) int { asked = append(asked, n); return tt.lie })
		wantFull(t, err, a)
		if len(asked) != tt.calls {
			t.Errorf("called %d times for %d bytes each, want %d", len(asked), tt.lie, tt.calls)
		}
		want, most := tt.size, max(limit/evictMostShare, 4*tt.size)
		for _, n := range asked {
			if n != want {
				t.Errorf("asked for %d, want %d", n, want)
			}
			want = min(2*want, most)
		}
	}
	lies := []int{1, math.MaxInt, 0} // their sum is no int
	_, err := a.AllocOrEvict(1000<<10, 8, func(int) int {
		lie := lies[0]
		lies = lies[1:]
		return lie
	})
	wantFull(t, err, a)
	if len(lies) != 1 {
		t.Errorf("left: %v", lies)
	}
}

func TestEvictThatPanics(t *testing.T) {
	a := newAccount(t, nil, "a", 4<<20)
	b := mustAlloc(t, a, 3<<20)
	wantPanic(t, "oh", func() { a.AllocOrEvict(2<<20, 8, func(int) int { panic("oh") }) })
	a.Free(b)
	a.Free(mustAlloc(t, a, 3<<20))
}

// An evict may allocate from the account, and may be refused.
func TestEvictThatAllocates(t *testing.T) {
	a := newAccount(t, nil, "a", 4<<20)
	victim := mustAlloc(t, a, 3<<20)
	var note []byte
	b, err := a.AllocOrEvict(2<<20, 8, func(bytes int) int {
		_, err := a.Alloc(2<<20, 8)
		wantFull(t, err, a)
		_, err = a.AllocOrEvict(2<<20, 8, func(int) int { return 0 })
		wantFull(t, err, a)
		a.Free(victim)
		note, err = a.Alloc(1000, 8)
		if err != nil {
			t.Error(err)
		}
		return 3 << 20
	})
	if err != nil {
		t.Fatal(err)
	}
	a.Free(b)
	a.Free(note)
}

// What was evicted may be in the heap's caches, which a heap that is refused drains now and then
// only: the bubble's clock stands still, so there is one drain.
func TestEvictedBlocksInCachesServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, nil, "a", 256<<20)
		var small [][]byte
		for size := 256; size <= 4096; size += 128 { // few of each size
			for sum := 0; sum < 48<<10; sum += size {
				small = append(small, mustAlloc(t, a, size))
			}
		}
		for size := 1 << 20; size >= 16<<10; size /= 4 {
			for err := error(nil); err == nil; {
				_, err = a.Alloc(size, 8)
			}
		}
		evict := func(int) (freed int) {
			for _, b := range small {
				freed += len(b)
				a.Free(b)
			}
			small = nil
			return freed
		}
		if _, err := a.AllocOrEvict(1200<<10, 8, evict); err != nil {
			t.Error(err)
		}
	})
}
