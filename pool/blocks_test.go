package pool_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/epoch"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/pool"
)

// wantPanic checks that call panics with a message that has all the parts.
func wantPanic(t *testing.T, call func(), parts ...string) {
	t.Helper()
	got := panics.Of(call)
	for _, part := range append(parts, "freehold: ") {
		if !strings.Contains(got, part) {
			t.Errorf("the panic does not say %q: %q", part, got)
		}
	}
}

// Stats has the size of a block, and sums over all blocks. It frees retired blocks once the last
// guard has left.
func TestStats(t *testing.T) {
	b := newBlocks(t, 100, 8, &pool.Options{MaxBlocks: 50, MaxBytes: 1 << 20})
	for range 3 {
		freehold.Must(b.Alloc(10, 8))
	}
	guard := b.Enter()
	b.Retire(freehold.Must(b.Alloc(100, 8)))
	s := b.Stats()
	want := pool.Stats{BlockSize: 100, Live: 3, LiveBytes: 300, Retired: 1, Blocks: 50, MaxBlocks: 50, Chunks: 1, Reserved: s.Reserved, MaxBytes: 1 << 20}
	if s != want || s.Reserved < 50*104 {
		t.Errorf("%+v, want %+v", s, want)
	}
	guard.Leave()
	want.Retired = 0
	if s := b.Stats(); s != want {
		t.Errorf("after the last guard left: %+v, want %+v", s, want)
	}
}

// closeEmpty checks that no block is live, and closes the pool.
func closeEmpty(t *testing.T, p interface {
	Live() int
	Close()
}) {
	t.Helper()
	if n := p.Live(); n != 0 {
		t.Errorf("%d blocks are live at Close", n)
	}
	p.Close()
}

// newBlocks returns a pool on a parent that fails t for leaks and overruns.
func newBlocks(t testing.TB, bytes, align int, o *pool.Options) *pool.Blocks {
	b := pool.NewBlocks(alloctest.New(t), bytes, align, o)
	t.Cleanup(b.Close)
	return b
}

func TestBlocksConform(t *testing.T) {
	for _, c := range []struct{ bytes, align int }{{24, 8}, {48, 16}, {64, 64}, {1000, 8}, {4096, 4096}, {100000, 16}} {
		t.Run(fmt.Sprint(c.bytes, "/", c.align), func(t *testing.T) { blocksConform(t, c.bytes, c.align) })
	}
}

// They do without assembly, with pins or not.
func TestBlocksConformInGo(t *testing.T) {
	for _, pins := range []bool{false, true} {
		t.Run(fmt.Sprint("pins=", pins), func(t *testing.T) {
			defer pool.Plain(pins)()
			blocksConform(t, 48, 16)
		})
	}
}

func blocksConform(t *testing.T, bytes, align int) {
	alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
		h := freehold.NewHeap(nil)
		t.Cleanup(h.Close)
		b := pool.NewBlocks(h, bytes, align, nil)
		t.Cleanup(func() { closeEmpty(t, b) })
		return b
	}, &alloctest.Options{
		MaxSize:    bytes,
		MaxAlign:   align,
		Concurrent: true,
		Detects:    alloctest.DoubleFree | alloctest.ForeignFree | alloctest.InteriorFree,
	})
}

func TestFallbackOfThreeLayersConforms(t *testing.T) {
	alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
		h := freehold.NewHeap(nil)
		t.Cleanup(h.Close)
		small, medium := pool.NewBlocks(h, 16, 16, nil), pool.NewBlocks(h, 256, 16, nil)
		t.Cleanup(small.Close)
		t.Cleanup(medium.Close)
		own := freehold.NewHeap(nil)
		t.Cleanup(own.Close)
		return freehold.NewFallback(small, freehold.NewFallback(medium, own))
	}, &alloctest.Options{Concurrent: true})
}

// FuzzBlocks runs alloctest's programs on a pool that is sometimes out of memory.
func FuzzBlocks(f *testing.F) {
	f.Add([]byte{0, 8, 0, 8, 1, 0})
	f.Add([]byte("free the block, alloc it, zero it, free it again, and resize it as well"))
	f.Fuzz(func(t *testing.T, prog []byte) {
		b := pool.NewBlocks(alloctest.New(t), 100, 16, &pool.Options{MaxBlocks: 40})
		alloctest.RunProgram(t, b, prog)
		closeEmpty(t, b)
	})
}

func TestSizesThatThePoolDoesNotHaveAreOutOfMemory(t *testing.T) {
	b := newBlocks(t, 16, 8, nil)
	for _, c := range []struct{ size, align int }{{17, 1}, {1 << 30, 8}, {8, 16}, {16, 1 << 30}} {
		if _, err := b.Alloc(c.size, c.align); !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Errorf("Alloc(%d, %d): %v", c.size, c.align, err)
		}
	}
	if s := b.Stats(); s.Reserved != 0 {
		t.Errorf("%+v for nothing", s)
	}
}

func TestLimits(t *testing.T) {
	for _, o := range []pool.Options{{MaxBlocks: 1}, {MaxBlocks: 3}, {MaxBlocks: 1000}, {MaxBlocks: 5000}, {MaxBytes: 1000}, {MaxBytes: 70000}, {MaxBytes: 200000}} {
		b := newBlocks(t, 48, 16, &o)
		var blocks [][]byte
		for range 3 {
			for {
				r, err := b.Alloc(48, 16)
				if err != nil {
					if !errors.Is(err, freehold.ErrOutOfMemory) {
						t.Fatal(err)
					}
					break
				}
				blocks = append(blocks, r)
			}
			s := b.Stats()
			if s.Live != len(blocks) || s.Live != s.Blocks || o.MaxBlocks > 0 && s.Live != o.MaxBlocks || o.MaxBytes > 0 && s.Reserved > o.MaxBytes || s.Live == 0 {
				t.Errorf("%+v: %+v with %d blocks", o, s, len(blocks))
			}
			b.PutBatch(blocks)
			blocks = blocks[:0]
		}
	}
}

func TestBatchAtTheLimitGivesWhatThereIs(t *testing.T) {
	b := newBlocks(t, 32, 8, &pool.Options{MaxBlocks: 200})
	dst := make([][]byte, 300)
	n, err := b.GetBatch(dst)
	if n != 200 || !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Fatalf("%d blocks, %v", n, err)
	}
	seen := map[*byte]bool{}
	for _, r := range dst[:n] {
		if len(r) != 32 || cap(r) != 32 || seen[&r[0]] {
			t.Fatalf("len %d, cap %d, twice: %t", len(r), cap(r), seen[&r[0]])
		}
		seen[&r[0]] = true
	}
	b.PutBatch(dst)
	if n, err := b.GetBatch(dst[:200]); n != 200 || err != nil {
		t.Errorf("%d blocks, %v: some were lost", n, err)
	}
	b.PutBatch(dst[:200])
}

func TestEveryParentFailure(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // free blocks on another stack would cost a chunk
	for n := 0; ; n++ {
		b := pool.NewBlocks(alloctest.FailAfter(alloctest.New(t), n), 1024, 8, nil)
		var blocks [][]byte
		for range 200 {
			r, err := b.Alloc(1024, 8)
			if err != nil {
				if !errors.Is(err, freehold.ErrOutOfMemory) {
					t.Fatal(err)
				}
				break
			}
			blocks = append(blocks, r)
		}
		if s := b.Stats(); s.Live != len(blocks) || s.Chunks != min(n/2, 4) {
			t.Fatalf("after %d allocations: %+v, %d blocks", n, s, len(blocks))
		}
		whole := len(blocks) == 200
		for _, r := range blocks {
			b.Free(r)
		}
		b.Trim()
		if s := b.Stats(); s.Reserved != 0 || s.Blocks != 0 {
			t.Errorf("after %d allocations and Trim: %+v", n, s)
		}
		b.Close()
		if whole {
			return
		}
	}
}

func TestPoolWorksAfterOneFailure(t *testing.T) {
	for n := range 6 {
		b := pool.NewBlocks(alloctest.FailOnce(alloctest.New(t), n), 1024, 8, nil)
		failed := 0
		for range 200 {
			if _, err := b.Alloc(1024, 8); err != nil {
				failed++
			}
		}
		// No call fails while another stack has a free block.
		if failed > 1 || b.Live() != 200-failed {
			t.Errorf("%d failed, %d live", failed, b.Live())
		}
		b.Close()
	}
}

func TestBlocksOnOtherStacksAreFoundAtTheLimit(t *testing.T) {
	const blocks = 128
	b := newBlocks(t, 64, 8, &pool.Options{MaxBlocks: blocks})
	for range 20 {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				var mine [][]byte
				for range blocks / 4 {
					mine = append(mine, freehold.Must(b.Alloc(64, 8)))
				}
				b.PutBatch(mine)
			})
		}
		wg.Wait()
		all := make([][]byte, blocks)
		if n, err := b.GetBatch(all); n != blocks {
			t.Fatalf("%d blocks of %d: %v", n, blocks, err)
		}
		b.PutBatch(all)
	}
}

func TestResetKeepsTheMemory(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // free blocks on another stack would cost a chunk
	b := newCached(t, nil)
	c := b.NewCache()
	defer c.Close()
	freehold.Must(c.Get())
	blocks := make([][]byte, 3000)
	freehold.Must(b.GetBatch(blocks))
	b.Retire(blocks[0])
	before := b.Stats()
	b.Reset()
	if s := b.Stats(); s.Live != 0 || s.Retired != 0 || s.Reserved != before.Reserved {
		t.Errorf("%+v, before %+v", s, before)
	}
	again := make([][]byte, before.Blocks)
	freehold.Must(b.GetBatch(again))
	seen := map[*byte]bool{}
	for _, r := range again {
		if seen[&r[0]] {
			t.Fatal("a block was handed out twice after Reset")
		}
		seen[&r[0]] = true
	}
	if s := b.Stats(); s.Reserved != before.Reserved {
		t.Errorf("%+v, before %+v", s, before)
	}
}

func TestTrimGivesBackWhatIsFree(t *testing.T) {
	b := newBlocks(t, 1024, 8, nil)
	blocks := make([][]byte, 640)
	freehold.Must(b.GetBatch(blocks))
	before := b.Stats()
	b.PutBatch(blocks[1:])
	b.Trim()
	s := b.Stats()
	if s.Live != 1 || s.Chunks != 1 || before.Chunks < 9 {
		t.Errorf("%+v, before %+v", s, before)
	}
	if !b.Owns(blocks[0]) || b.Owns(blocks[639]) {
		t.Error("Owns is wrong about what is left")
	}
	wantPanic(t, func() { b.Free(blocks[639]) }, "not of this pool")
	freehold.Must(b.GetBatch(blocks[1:]))
	b.PutBatch(blocks)
	b.Trim()
	if s := b.Stats(); s.Reserved != 0 {
		t.Errorf("%+v", s)
	}
}

// A block may grow to the block size, and a limit of one chunk permits one chunk, also while
// the metadata of the one before is kept for it.
func TestBoundsMayBeReached(t *testing.T) {
	b := newBlocks(t, 64, 8, nil)
	x := freehold.Must(b.Alloc(10, 1))
	r, ok := b.Resize(x, 64)
	if !ok || len(r) != 64 {
		t.Errorf("Resize of 10 bytes to 64: %v", ok)
	}
	b.Free(r)
	p := newCached(t, nil)
	p.Free(freehold.Must(p.Alloc()))
	one := newCached(t, &pool.Options{MaxBytes: p.Stats().Reserved})
	defer one.NewCache().Close() // keeps the metadata
	for range 2 {
		if x, err := one.Alloc(); err != nil {
			t.Error(err)
		} else {
			one.Free(x)
		}
		one.Trim()
		if n := one.Stats().Chunks; n != 0 {
			t.Errorf("%d chunks after Trim", n)
		}
	}
}

// TestClosedAllocatorsPanicOnlyForBlocks of package freehold has the other calls of Blocks.
func TestCallsAfterClosePanic(t *testing.T) {
	b := pool.NewBlocks(alloctest.New(t), 64, 8, nil)
	r := freehold.Must(b.Alloc(64, 8))
	b.Close()
	wantPanic(t, func() { b.Retire(r) }, "freehold: pool.Blocks.Retire: the pool of 64-byte blocks is closed")
	p := pool.New[node](alloctest.New(t), nil)
	n := freehold.Must(p.Get())
	c := p.NewCache()
	freehold.Must(c.Get())
	p.Close()
	p.Close()
	for name, call := range map[string]func(){
		"pool.Pool.Get":       func() { p.Get() },
		"pool.Pool.Put":       func() { p.Put(n) },
		"pool.Pool.PutHandle": func() { p.PutHandle(pool.HandleAt[node](n)) },
		"pool.Pool.Handle":    func() { p.Handle(n) },
		"pool.Pool.Retire":    func() { p.Retire(n) },
		"pool.Pool.Reset":     func() { p.Reset() },
		"pool.Pool.Trim":      func() { p.Trim() },
		"pool.Pool.NewCache":  func() { p.NewCache() },
		"pool.Cache.Get":      func() { c.Get() },
		"pool.Cache.Put":      func() { c.Put(n) },
	} {
		wantPanic(t, call, "freehold: "+name+": the pool of pool_test.node is closed")
	}
	c.Close()
}

// A closed pool hands out and takes no block, even if the parent leaves the memory as it
// was.
func TestClosedPoolForgetsItsFreeBlocks(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one stack
	h := freehold.NewHeap(nil)
	defer h.Close()
	b := cached{pool.New[values](h, nil)}
	c := b.NewCache()
	defer c.Close()
	r := freehold.Must(c.Get())
	b.Free(freehold.Must(b.Alloc()))
	b.Close()
	for name, call := range map[string]func(){
		"Pool.Get":  func() { b.Pool.Get() },
		"Cache.Get": func() { c.Get() },
		"Cache.Put": func() { c.Put(r) },
	} {
		wantPanic(t, call, "freehold: pool."+name+": the pool of pool_test.values is closed")
	}
}

func TestCallsAfterCloseOfACachePanic(t *testing.T) {
	p := newPool[node](t, nil)
	for _, empty := range []bool{false, true} {
		c := p.NewCache()
		n := freehold.Must(c.Get())
		for empty && p.Live() < 65 {
			n = freehold.Must(c.Get())
		}
		c.Close()
		c.Close()
		wantPanic(t, func() { c.Get() }, "freehold: pool.Cache.Get: the cache of the pool of pool_test.node is closed")
		wantPanic(t, func() { c.Put(n) }, "freehold: pool.Cache.Put: the cache of the pool of pool_test.node is closed")
	}
}

func TestMistakesSayWhatWasWrong(t *testing.T) {
	b := newBlocks(t, 24, 8, &pool.Options{MaxBlocks: 4})
	r, q, s := freehold.Must(b.Alloc(24, 8)), freehold.Must(b.Alloc(24, 8)), freehold.Must(b.Alloc(24, 8))
	b.Retire(freehold.Must(b.Alloc(24, 8)))
	b.Trim() // so s is of the second batch
	guard := b.Enter()
	defer guard.Leave()
	b.Retire(s)
	b.Free(q)
	other := newBlocks(t, 24, 8, nil)
	foreign := freehold.Must(other.Alloc(24, 8))
	defer other.Free(foreign)
	for _, m := range []struct {
		block []byte
		want  string
	}{
		{q, "double free"},
		{s, "retired before"},
		{r[8:], "8 bytes into a block"},
		{r[1:], "1 byte into a block"},
		{r[:8], "is no block"},
		{make([]byte, 24), "not of this pool; was it moved by append?"},
		{append(r, 1), "not of this pool; was it moved by append?"}, // too long, and cap exceeds len
		{foreign, "not of this pool"},
		{unsafe.Slice(&r[0], 25), "is no block"},
	} {
		block := fmt.Sprintf(": block %p, pool of 24-byte blocks: ", m.block)
		wantPanic(t, func() { b.Free(m.block) }, "freehold: pool.Blocks.Free"+block, m.want)
		wantPanic(t, func() { b.PutBatch([][]byte{m.block}) }, "freehold: pool.Blocks.Free"+block, m.want)
		wantPanic(t, func() { b.Retire(m.block) }, "freehold: pool.Blocks.Retire"+block, m.want)
	}
	if n := b.Stats().Retired; n != 1 {
		t.Errorf("%d blocks retired, want 1", n)
	}
	b.Free(r)
}

func TestArgumentsAreChecked(t *testing.T) {
	heap := freehold.Default()
	b := newBlocks(t, 24, 8, nil)
	r := freehold.Must(b.Alloc(24, 8))
	defer b.Free(r)
	type named struct {
		key  int
		name struct{ first string }
	}
	for want, call := range map[string]func(){
		"pool.NewBlocks: block size 0, want 1 to 16777216":           func() { pool.NewBlocks(heap, 0, 8, nil) },
		"pool.NewBlocks: block size -1, want 1 to 16777216":          func() { pool.NewBlocks(heap, -1, 8, nil) },
		"pool.NewBlocks: block size 16777217, want 1 to 16777216":    func() { pool.NewBlocks(heap, 1<<24+1, 8, nil) },
		"pool.NewBlocks: alignment 0, want 1 to 16777216":            func() { pool.NewBlocks(heap, 8, 0, nil) },
		"pool.NewBlocks: alignment 24, want a power of two":          func() { pool.NewBlocks(heap, 8, 24, nil) },
		"pool.NewBlocks: alignment 33554432, want 1 to 16777216":     func() { pool.NewBlocks(heap, 8, 1<<25, nil) },
		"pool.NewBlocks: Options.MaxBlocks -1, want 0 or more":       func() { pool.NewBlocks(heap, 8, 8, &pool.Options{MaxBlocks: -1}) },
		"pool.NewBlocks: Options.MaxBytes -1, want 0 or more":        func() { pool.NewBlocks(heap, 8, 8, &pool.Options{MaxBytes: -1}) },
		"pool.New: Options.MaxBytes -2, want 0 or more":              func() { pool.New[int](heap, &pool.Options{MaxBytes: -2}) },
		"pool.New: block size 16777217, want 1 to 16777216":          func() { pool.New[[1<<24 + 1]byte](heap, nil) },
		"pool.NewBlocks: parent is nil":                              func() { pool.NewBlocks(nil, 8, 8, nil) },
		"pool.New: parent is nil":                                    func() { pool.New[int](nil, nil) },
		"pool.New[string]: it is a string, which points":             func() { pool.New[string](heap, nil) },
		"pool.New[named]: field name.first is a string, which point": func() { pool.New[named](heap, nil) },
		"pool.Blocks.Alloc: size -1, want 0 or more":                 func() { b.Alloc(-1, 8) },
		"pool.Blocks.Alloc: alignment 3, want a power of two":        func() { b.Alloc(8, 3) },
		"pool.Blocks.Zeroed: size -1, want 0 or more":                func() { b.Zeroed(-1, 8) },
		"pool.Blocks.Zeroed: alignment 0, want a power of two":       func() { b.Zeroed(0, 0) },
		"pool.Blocks.Resize: size -1, want 0 or more":                func() { b.Resize(r, -1) },
	} {
		wantPanic(t, call, "freehold: "+want)
	}
}

// The panics of zero values name the constructor, where that does not slow the fast paths
// down.
func TestZeroValuesNameTheirConstructors(t *testing.T) {
	var (
		b pool.Blocks
		p pool.Pool[node]
		d pool.Cache[node]
		n node
	)
	r := make([]byte, 8)
	for name, call := range map[string]func(){
		"pool.Blocks.Alloc":    func() { b.Alloc(8, 8) },
		"pool.Blocks.Zeroed":   func() { b.Zeroed(8, 8) },
		"pool.Blocks.Resize":   func() { b.Resize(r, 4) },
		"pool.Blocks.Free":     func() { b.Free(r) },
		"pool.Blocks.GetBatch": func() { b.GetBatch([][]byte{nil}) },
		"pool.Blocks.Retire":   func() { b.Retire(r) },
		"pool.Blocks.Owns":     func() { b.Owns(r) },
		"pool.Pool.Handle":     func() { p.Handle(&n) },
		"pool.Pool.PutHandle":  func() { p.PutHandle(pool.HandleAt[node](&n)) },
		"pool.Blocks.Stats":    func() { b.Stats() },
		"pool.Blocks.Live":     func() { b.Live() },
		"pool.Blocks.Reset":    func() { b.Reset() },
		"pool.Blocks.Trim":     func() { b.Trim() },
		"pool.Blocks.Close":    func() { b.Close() },
		"pool.Pool.Get":        func() { p.Get() },
		"pool.Pool.Retire":     func() { p.Retire(&n) },
		"pool.Pool.NewCache":   func() { p.NewCache() },
		"pool.Pool.Stats":      func() { p.Stats() },
		"pool.Pool.Live":       func() { p.Live() },
		"pool.Pool.Reset":      func() { p.Reset() },
		"pool.Pool.Trim":       func() { p.Trim() },
		"pool.Pool.Close":      func() { p.Close() },
	} {
		wantPanic(t, call, "freehold: "+name+": zero value: pool.New makes a Pool, pool.NewBlocks makes Blocks")
	}
	for _, enter := range []func() epoch.Guard{b.Enter, p.Enter} {
		func() {
			defer func() {
				if _, ok := recover().(runtime.Error); !ok {
					t.Error("Enter is no nil dereference")
				}
			}()
			enter()
		}()
	}
	wantPanic(t, func() { b.Free(r[:0]) }, "freehold: pool.Blocks.Free: zero value")
	wantPanic(t, func() { b.PutBatch([][]byte{r}) }, "freehold: pool.Blocks.Free: zero value")
	for name, call := range map[string]func(){
		"pool.Cache.Put":   func() { d.Put(&n) },
		"pool.Cache.Close": func() { d.Close() },
	} {
		wantPanic(t, call, "freehold: "+name+": zero value: Pool.NewCache makes a Cache")
	}
}

func TestLargeBlocks(t *testing.T) {
	b := newBlocks(t, 1<<20+1, 4096, nil)
	blocks := make([][]byte, 20)
	freehold.Must(b.GetBatch(blocks))
	for i, r := range blocks {
		r[0], r[len(r)-1] = byte(i), byte(i)
	}
	for i, r := range blocks {
		if r[0] != byte(i) || r[len(r)-1] != byte(i) {
			t.Error("blocks overlap")
		}
		b.Free(r)
	}
}

// All operations concurrently: goroutines get, hand over, put, retire, trim and look up.
func TestStress(t *testing.T) {
	rounds := 20000
	if testing.Short() {
		rounds = 3000
	}
	h := freehold.NewHeap(nil)
	defer h.Close()
	b := cached{pool.New[values](h, &pool.Options{MaxBlocks: 4000})}
	over := make(chan []byte, 100)
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(g)))
			cache := b.NewCache()
			defer cache.Close()
			var mine [][]byte
			for range rounds {
				switch op := r.IntN(100); {
				case op < 45:
					get := cache.Get
					if op < 25 {
						get = func() ([]byte, error) { return b.Alloc() }
					}
					if x, err := get(); err == nil {
						x[0], x[63] = byte(g), byte(g)
						mine = append(mine, x)
					}
				case op < 90 && len(mine) > 0:
					i := r.IntN(len(mine))
					x := mine[i]
					mine[i] = mine[len(mine)-1]
					mine = mine[:len(mine)-1]
					if x[0] != byte(g) || x[63] != byte(g) {
						t.Errorf("a block of goroutine %d holds %d and %d", g, x[0], x[63])
					}
					switch {
					case op < 60:
						b.Free(x)
					case op < 70:
						cache.Put(x)
					case op < 75:
						b.Retire(x)
					default:
						select {
						case over <- x:
						default:
							b.Free(x)
						}
					}
				case op < 96:
					select {
					case x := <-over:
						cache.Put(x)
					default:
					}
				case op < 97:
					b.Enter().Leave()
				case op < 98 && r.IntN(20) == 0:
					b.Trim()
				case op < 99 && r.IntN(20) == 0:
					b.Stats()
				}
			}
			for _, x := range mine {
				b.Free(x)
			}
		})
	}
	wg.Wait()
	close(over)
	for x := range over {
		b.Free(x)
	}
	closeEmpty(t, b)
}
