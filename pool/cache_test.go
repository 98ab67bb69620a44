package pool_test

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/poison"
	"github.com/freehold-go/freehold/pool"
)

// cached is a Pool of 64-byte values with the calls of Blocks, and caches of byte slices.
type cached struct{ *pool.Pool[values] }

type values [8]uint64

func newCached(t testing.TB, o *pool.Options) cached { return cached{newPool[values](t, o)} }

func (c cached) Alloc() ([]byte, error) { return bytesOf(c.Get()) }
func (c cached) Retire(r []byte)        { c.Pool.Retire(valuesOf(r)) }
func (c cached) NewCache() cacheOf64    { return cacheOf64{c.Pool.NewCache()} }

func (c cached) Free(blocks ...[]byte) {
	for _, r := range blocks {
		c.Put(valuesOf(r))
	}
}

func (c cached) GetBatch(dst [][]byte) (n int, err error) {
	for n < len(dst) && err == nil {
		if dst[n], err = c.Alloc(); err == nil {
			n++
		}
	}
	return n, err
}

type cacheOf64 struct{ *pool.Cache[values] }

func (c cacheOf64) Get() ([]byte, error) { return bytesOf(c.Cache.Get()) }
func (c cacheOf64) Put(r []byte)         { c.Cache.Put(valuesOf(r)) }

func bytesOf(v *values, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)), nil
}

func valuesOf(r []byte) *values { return (*values)(unsafe.Pointer(unsafe.SliceData(r))) }

// get takes n blocks from a cache.
func get(c cacheOf64, n int) [][]byte {
	blocks := make([][]byte, n)
	for i := range blocks {
		blocks[i] = freehold.Must(c.Get())
	}
	return blocks
}

// A double free is detected for each pair of calls that free a block: the last block that
// a cache handed out, an earlier one, and one whose place in the cache is in other use.
func TestSecondPutIsDetected(t *testing.T) {
	defer poison.Set(false)() // the caches of a checked pool are empty
	b := newCached(t, nil)
	own, other := b.NewCache(), b.NewCache()
	defer own.Close()
	defer other.Close()
	puts := map[string]func([]byte){"own": own.Put, "other": other.Put, "pool": func(r []byte) { b.Free(r) }, "retire": b.Retire}
	for first, put := range puts {
		for second, again := range puts {
			for at := range 4 {
				blocks := get(own, 5)
				var r []byte
				switch at {
				case 0, 1, 2:
					r = blocks[4-2*at]
					put(r)
				case 3:
					own.Put(blocks[0])
					own.Put(blocks[4])
					r = blocks[0]
					if q := freehold.Must(own.Get()); &q[0] != &blocks[4][0] {
						t.Fatal("not the block that was put last; the test needs that")
					}
					blocks[0] = freehold.Must(own.Get())
					own.Put(blocks[4])
					put(r)
				}
				wantPanic(t, func() { again(r) })
				wantPanic(t, func() { b.Blocks().Resize(r, 8) })
				for i, x := range blocks {
					if &x[0] != &r[0] && !(at == 3 && i == 4) {
						b.Free(x)
					}
				}
				if n := b.Live(); n != 0 {
					t.Fatalf("%s, %s, %d: %d blocks are live", first, second, at, n)
				}
			}
		}
	}
}

// A cache that is full gives half of its blocks to the pool, so that few calls take its lock.
func TestFullCacheGivesHalfOfItsBlocks(t *testing.T) {
	defer poison.Set(false)() // the caches of a checked pool are empty
	const full = 128
	b := newCached(t, &pool.Options{MaxBlocks: full + 1})
	c := b.NewCache()
	defer c.Close()
	for _, r := range get(c, full+1) {
		c.Put(r)
	}
	if n, _ := b.GetBatch(make([][]byte, full)); n != full/2 {
		t.Errorf("%d of %d blocks are out of the cache", n, full+1)
	}
}

func TestTwoPutsAtOnceAreFoundByGet(t *testing.T) {
	b := newCached(t, nil)
	c := b.NewCache()
	defer c.Close()
	blocks := get(c, 3)
	for i := range blocks {
		c.Put(blocks[2-i])
	}
	b.Blocks().TakeAtOnce(unsafe.Pointer(&blocks[0][0]))
	wantPanic(t, func() { c.Get() }, "freed by two goroutines at once")
	if x := get(c, 2); &x[0][0] != &blocks[1][0] || &x[1][0] != &blocks[2][0] {
		t.Error("the cache has lost its other blocks")
	}
}

func TestTwoPutsAtOnceLeaveTheBlockToOne(t *testing.T) {
	defer poison.Set(false)() // the caches of a checked pool are empty
	const blocks = 256
	b := newCached(t, &pool.Options{MaxBlocks: blocks})
	c := b.NewCache()
	mine := get(c, blocks)
	for _, r := range mine[:128] {
		c.Put(r)
	}
	b.Blocks().TakeAtOnce(unsafe.Pointer(&mine[10][0]))  // leaves the cache when it is full
	b.Blocks().TakeAtOnce(unsafe.Pointer(&mine[100][0])) // moves down then
	for _, r := range mine[128:] {
		c.Put(r)
	}
	c.Close()
	rest := make([][]byte, blocks)
	n, _ := b.GetBatch(rest)
	for _, r := range rest[:n] {
		if &r[0] == &mine[10][0] || &r[0] == &mine[100][0] {
			t.Error("handed out twice")
		}
	}
	if n != blocks-2 || b.Live() != blocks {
		t.Errorf("%d blocks, and Live is %d", n, b.Live())
	}
}

// A chunk is returned and another comes at its address while a cache has entries of its
// blocks.
func TestTrimUnderACache(t *testing.T) {
	h := freehold.NewHeap(nil)
	defer h.Close()
	b := cached{pool.New[values](h, nil)}
	defer b.Close()
	c, back := b.NewCache(), b.NewCache()
	const blocks = 5000
	again := 0
	seen := map[*byte]bool{}
	for range 20 {
		mine := get(c, blocks)
		for _, x := range mine {
			if seen[&x[0]] {
				again++
			}
			seen[&x[0]] = true
		}
		for i := range mine {
			back.Put(mine[blocks-1-i])
		}
		back.Close()
		back = b.NewCache()
		held := freehold.Must(c.Get())
		b.Trim()
		for _, x := range mine[1:20] {
			if &x[0] != &held[0] {
				wantPanic(t, func() { c.Put(x) })
			}
		}
		c.Put(held)
		wantPanic(t, func() { c.Put(held) }, "double free")
	}
	if again == 0 {
		t.Error("no address came back; the test needs that")
	}
	c.Close()
	back.Close()
	b.Trim()
	if s := b.Stats(); s.Reserved != 0 || s.Live != 0 {
		t.Errorf("%+v", s)
	}
}

// Close also returns the metadata that the pool kept for its caches.
func TestCloseUnderACache(t *testing.T) {
	b := newCached(t, nil) // the parent fails the test on leaks
	c := b.NewCache()
	for _, x := range get(c, 5000) {
		b.Free(x)
	}
	b.Trim()
	b.Close()
	c.Close()
}

func TestCacheAtTheLimit(t *testing.T) {
	b := newCached(t, &pool.Options{MaxBlocks: 100})
	c, other := b.NewCache(), b.NewCache()
	defer c.Close()
	defer other.Close()
	mine := get(c, 100)
	for range 3 {
		for _, get := range []func() ([]byte, error){c.Get, other.Get, b.Alloc} {
			if r, err := get(); r != nil || !errors.Is(err, freehold.ErrOutOfMemory) {
				t.Fatalf("%d bytes, %v", len(r), err)
			}
		}
		c.Put(mine[50])
		if r, err := c.Get(); err != nil || &r[0] != &mine[50][0] {
			t.Fatal("not the block that was put", err)
		}
	}
	b.Free(mine...)
}

func TestManyCaches(t *testing.T) {
	b := newCached(t, nil)
	caches := make([]cacheOf64, 300)
	for i := range caches {
		caches[i] = b.NewCache()
	}
	for i, c := range caches {
		r := freehold.Must(c.Get())
		next := caches[(i+1)%len(caches)]
		next.Put(r)
		wantPanic(t, func() { c.Put(r) }, "double free")
	}
	for _, c := range caches {
		c.Close()
	}
	closeEmpty(t, b)
}

// The number of a closed cache is reused.
func TestCacheNumbersAreUsedAgain(t *testing.T) {
	b := newCached(t, nil)
	b.NewCache().Close()
	before := b.Blocks().CacheNumbers()
	for range 100 {
		b.NewCache().Close()
	}
	if after := b.Blocks().CacheNumbers(); after != before {
		t.Errorf("%d numbers for one cache at a time, and %d before", after, before)
	}
}

// A cache has pointers to the statuses of blocks that it handed out. So Trim keeps the
// metadata, for new chunks, until the last cache is closed.
func TestStatusesStayWhileACacheIsOpen(t *testing.T) {
	b := newCached(t, nil)
	c, other := b.NewCache(), b.NewCache()
	chunk := 0
	kept := func(when string) {
		t.Helper()
		mine := get(c, 64) // all of the cache
		full := b.Stats().Reserved
		if chunk == 0 {
			chunk = full
		}
		b.Free(mine...)
		b.Trim()
		if s := b.Stats(); full != chunk || s.Chunks != 0 || s.Reserved != chunk-64<<10 {
			t.Errorf("%s: %d bytes, and after Trim %+v", when, full, s)
		}
		wantPanic(t, func() { c.Put(mine[63]) }, "not of this pool")
	}
	kept("at first")
	kept("with the statuses of a chunk that is gone")
	other.Close()
	kept("with one cache closed")
	c.Close()
	if s := b.Stats(); s.Reserved != 0 {
		t.Errorf("after the last Close %+v", s)
	}
}
