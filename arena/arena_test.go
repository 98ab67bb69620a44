package arena

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

func TestArenaConforms(t *testing.T) {
	heap := func(t *testing.T) freehold.Allocator {
		h := freehold.NewHeap(nil)
		t.Cleanup(h.Close)
		return h
	}
	for _, c := range []struct {
		name    string
		parent  func(t *testing.T) freehold.Allocator
		options *Options
		short   bool
	}{
		{"heap", heap, nil, true},
		{"pages", func(*testing.T) freehold.Allocator { return freehold.Pages() }, nil, false},
		{"one byte at first", heap, &Options{ChunkBytes: 1}, false},
		{"tiny", func(t *testing.T) freehold.Allocator { return alloctest.New(t) }, &Options{ChunkBytes: 100, MaxChunkBytes: 1000}, true},
		{"arena", func(t *testing.T) freehold.Allocator {
			a := New(heap(t), nil)
			t.Cleanup(a.Close)
			return a
		}, nil, false},
	} {
		if testing.Short() && !c.short {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
				a := New(c.parent(t), c.options)
				t.Cleanup(func() {
					if n := a.Live(); n != 0 && !t.Failed() {
						t.Errorf("%d blocks live when all are freed", n)
					}
					a.Close()
				})
				return a
			}, &alloctest.Options{Detects: alloctest.ForeignFree})
		})
	}
}

func TestTenSmallBlocksTakeOneBlockOfTheParent(t *testing.T) {
	parent := &recorder{Allocator: alloctest.New(t)}
	a := New(parent, nil)
	if len(parent.sizes) != 0 {
		t.Error("New takes memory")
	}
	for range 10 {
		freehold.Must(a.Alloc(8, 8))
	}
	if !slices.Equal(parent.sizes, []int{4096}) {
		t.Errorf("chunks %v, want one of 4096", parent.sizes)
	}
	if got, want := a.Stats(), (Stats{Live: 10, LiveBytes: 80, Reserved: 4096, Chunks: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	a.Close()
	if parent.frees != len(parent.sizes) {
		t.Errorf("%d frees", parent.frees)
	}
}

func TestBlocksLieNextToEachOther(t *testing.T) {
	a := New(alloctest.New(t), nil)
	defer a.Close()
	last := freehold.Must(a.Alloc(3, 1))
	for _, c := range []struct{ size, align, pad int }{
		{5, 1, 0}, {8, 8, 0}, {1, 1, 0}, {2, 2, 1}, {4, 4, 0}, {16, 16, 8}, {64, 64, 16}, {1, 128, 64},
	} {
		b := freehold.Must(a.Alloc(c.size, c.align))
		if pad := addressOf(b) - addressOf(last) - uintptr(len(last)); int(pad) != c.pad {
			t.Errorf("%d bytes at a multiple of %d: after %d bytes, want %d", c.size, c.align, pad, c.pad)
		}
		if len(b) != c.size || cap(b) != c.size {
			t.Errorf("len %d, cap %d, want %d", len(b), cap(b), c.size)
		}
		last = b
		a.check(t)
	}
}

func TestChunksDouble(t *testing.T) {
	parent := &recorder{Allocator: alloctest.New(t)}
	a := New(parent, &Options{ChunkBytes: 256, MaxChunkBytes: 1024})
	defer a.Close()
	for range 100 {
		freehold.Must(a.Alloc(32, 8))
		a.check(t)
	}
	if want := []int{256, 512, 1024, 1024, 1024}; !slices.Equal(parent.sizes, want) {
		t.Errorf("chunks %v, want %v", parent.sizes, want)
	}
}

// A parent that refuses a chunk is asked for half of it, and so on.
func TestChunksAreHalvedForAParentThatRefuses(t *testing.T) {
	for limit, want := range map[int]int{4096: 4096, 4095: 2048, 1000: 512, 100: 100} {
		a := New(freehold.NewLimit(alloctest.New(t), limit), nil)
		if _, err := a.Alloc(100, 1); err != nil || a.Stats().Reserved != want {
			t.Errorf("a parent of %d bytes: %v, %d bytes reserved, want %d", limit, err, a.Stats().Reserved, want)
		}
		a.Close()
	}
}

// good is a parent whose blocks have good sizes.
type good struct{ freehold.Allocator }

func (good) GoodSize(size int) int { return (size + 99) / 100 * 100 }

func TestChunksHaveGoodSizes(t *testing.T) {
	parent := good{alloctest.New(t)}
	for _, c := range []struct {
		o    Options
		want int
	}{
		{Options{ChunkBytes: 256}, 300},
		{Options{ChunkBytes: 256, MaxBytes: 299}, 256}, // the good size would exceed the limit
		{Options{ChunkBytes: 256, MaxBytes: 300}, 300},
	} {
		a := New(parent, &c.o)
		freehold.Must(a.Alloc(1, 1))
		if a.Stats().Reserved != c.want {
			t.Errorf("%+v: %d bytes reserved, want %d", c.o, a.Stats().Reserved, c.want)
		}
		a.Close()
	}
}

func TestALargeBlockWastesNoChunk(t *testing.T) {
	parent := &recorder{Allocator: alloctest.New(t)}
	a := New(parent, &Options{ChunkBytes: 1024, MaxChunkBytes: 4096})
	defer a.Close()
	first := freehold.Must(a.Alloc(100, 4))
	for i, size := range []int{5000, 100000, 1025} {
		large := freehold.Must(a.Alloc(size, 8))
		if got := parent.sizes[i+1]; got != size {
			t.Errorf("a block of %d bytes takes a chunk of %d", size, got)
		}
		small := freehold.Must(a.Alloc(10, 2))
		if addressOf(small)-addressOf(first) > 1024 {
			t.Errorf("after a block of %d bytes the chunk is left", size)
		}
		a.check(t)
		a.Free(large)
	}
}

func TestAlignmentAboveTheChunkSize(t *testing.T) {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	a := New(heap, &Options{ChunkBytes: 64, MaxChunkBytes: 64})
	defer a.Close()
	for _, align := range []int{128, 4096, 1 << 16, 1 << 20} {
		for _, size := range []int{1, 64, 65, 5000} {
			b := freehold.Must(a.Zeroed(size, align))
			if addressOf(b)%uintptr(align) != 0 {
				t.Errorf("%d bytes at %#x, want a multiple of %d", size, addressOf(b), align)
			}
			a.check(t)
		}
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{ChunkBytes: -1}, "freehold: arena.New: Options.ChunkBytes -1, want 0 or more"},
		{Options{MaxChunkBytes: -1}, "freehold: arena.New: Options.MaxChunkBytes -1, want 0 or more"},
		{Options{MaxBytes: -1}, "freehold: arena.New: Options.MaxBytes -1, want 0 or more"},
		{Options{ChunkBytes: 65, MaxChunkBytes: 64}, "freehold: arena.New: Options.MaxChunkBytes 64, want 65 or more"},
	} {
		wantPanic(t, c.want, func() { New(freehold.Pages(), &c.o) })
	}
	for _, c := range []struct{ o, want Options }{
		{Options{}, Options{ChunkBytes: 4096, MaxChunkBytes: 1 << 20}},
		{Options{MaxChunkBytes: 64}, Options{ChunkBytes: 64, MaxChunkBytes: 64}},
		{Options{ChunkBytes: 2 << 20}, Options{ChunkBytes: 2 << 20, MaxChunkBytes: 2 << 20}},
	} {
		if got := c.o.withDefaults("arena.New"); got != c.want {
			t.Errorf("%+v becomes %+v, want %+v", c.o, got, c.want)
		}
	}
}

func TestLimitInTheMiddle(t *testing.T) {
	a := New(alloctest.New(t), &Options{ChunkBytes: 1000, MaxBytes: 2500})
	defer a.Close()
	for i := range 25 { // a chunk of 1000 bytes, then one of the remaining bytes
		b, err := a.Alloc(100, 4)
		if err != nil {
			t.Fatalf("block %d: %v", i, err)
		}
		setAll(b, byte(i))
	}
	a.check(t)
	before := a.Stats()
	for _, size := range []int{1, 101, 1 << 20, math.MaxInt} {
		b, err := a.Alloc(size, 1)
		if b != nil || !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Errorf("Alloc of %d: %d bytes, %v", size, len(b), err)
		}
		if err := a.Reserve(size); !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Errorf("Reserve of %d: %v", size, err)
		}
		if a.Stats() != before {
			t.Errorf("%+v, was %+v", a.Stats(), before)
		}
	}
	if _, err := a.Alloc(1, 1); err.Error() != "freehold: out of memory: the arena has 2500 bytes, a chunk of 1 byte more would exceed the limit of 2500" {
		t.Error(err)
	}
	a.Reset()
	for range 25 {
		freehold.Must(a.Alloc(100, 4))
	}
	a.check(t)
}

// TestSmallerChunksWhereTheParentHasNoLarge: an arena uses all of a limit.
func TestSmallerChunksWhereTheParentHasNoLarge(t *testing.T) {
	limit := freehold.NewLimit(alloctest.New(t), 5000)
	a := New(limit, &Options{ChunkBytes: 4096})
	defer a.Close()
	n := 0
	for ; ; n++ {
		if _, err := a.Alloc(64, 8); err != nil {
			break
		}
	}
	if n < 5000/64-2 {
		t.Errorf("%d blocks of 64 bytes in 5000", n)
	}
	a.check(t)
}

func TestEveryFailureOfTheParent(t *testing.T) {
	for _, fail := range []func(freehold.Allocator, int) freehold.Allocator{alloctest.FailAfter, alloctest.FailOnce} {
		for n := 0; ; n++ {
			a := New(fail(alloctest.New(t), n), &Options{ChunkBytes: 64, MaxChunkBytes: 256})
			failed := false
			var blocks [][]byte
			for i := range 60 {
				before := a.Stats()
				alloc := a.Alloc
				if i%3 == 0 {
					alloc = a.Zeroed
				}
				b, err := alloc(1+i*11, 1<<(i%8))
				if err != nil {
					failed = true
					if !errors.Is(err, freehold.ErrOutOfMemory) || b != nil {
						t.Fatalf("failure %d: %d bytes, %v", n, len(b), err)
					}
					if a.Stats() != before {
						t.Fatalf("failure %d: %+v, was %+v", n, a.Stats(), before)
					}
				}
				setAll(b, byte(i))
				blocks = append(blocks, b)
				a.check(t)
			}
			for i, b := range blocks {
				if !bytes.Equal(b, bytes.Repeat([]byte{byte(i)}, len(b))) {
					t.Fatalf("failure %d: block %d has changed", n, i)
				}
			}
			a.Close()
			if !failed && n > 0 {
				break
			}
		}
	}
}

func TestArguments(t *testing.T) {
	a := New(alloctest.New(t), nil)
	defer a.Close()
	for range 2 { // without and with a chunk
		for _, size := range []int{-1, math.MinInt} {
			for call, use := range map[string]func(){
				"Alloc":   func() { a.Alloc(size, 8) },
				"Zeroed":  func() { a.Zeroed(size, 8) },
				"Resize":  func() { a.Resize(nil, size) },
				"Reserve": func() { a.Reserve(size) },
				"TrimTo":  func() { a.TrimTo(size) },
			} {
				wantPanic(t, fmt.Sprintf("freehold: arena.Arena.%s: size %d, want 0 or more", call, size), use)
			}
		}
		for _, align := range []int{0, -1, -8, 3, 12, math.MinInt, math.MaxInt} {
			for _, size := range []int{0, 1, 8, 1 << 30, math.MaxInt} {
				wantPanic(t, fmt.Sprintf("freehold: arena.Arena.Alloc: alignment %d, want a power of two", align), func() { a.Alloc(size, align) })
			}
		}
		for _, align := range []int{1, 8, 1 << 30} {
			for _, size := range []int{math.MaxInt, math.MaxInt - 7, math.MaxInt / 2} {
				if b, err := a.Alloc(size, align); b != nil || !errors.Is(err, freehold.ErrOutOfMemory) {
					t.Errorf("Alloc(%d, %d): %d bytes, %v", size, align, len(b), err)
				}
			}
		}
		if b, err := a.Alloc(0, 1<<20); b == nil || len(b) != 0 || err != nil {
			t.Errorf("Alloc of 0: %v, %v", b, err)
		}
		freehold.Must(a.Alloc(10, 1))
	}
	a.check(t)
}

func TestFreeOfTheNewestGivesItsBytesBack(t *testing.T) {
	a := New(alloctest.New(t), nil)
	defer a.Close()
	first := freehold.Must(a.Alloc(100, 1))
	second := freehold.Must(a.Alloc(50, 1))
	third := freehold.Must(a.Alloc(10, 1))
	a.Free(third)
	a.Free(second) // now the newest
	if a.Stats().LiveBytes != 100 || a.Live() != 1 {
		t.Errorf("%+v", a.Stats())
	}
	again := freehold.Must(a.Zeroed(60, 1))
	if addressOf(again) != addressOf(second) {
		t.Error("the bytes are not used again")
	}
	a.Free(first) // not the newest: Free only counts
	if a.Stats().LiveBytes != 160 || a.Live() != 1 {
		t.Errorf("%+v", a.Stats())
	}
	a.check(t)
}

func TestFreeOfWhatIsNoBlock(t *testing.T) {
	a := New(alloctest.New(t), &Options{ChunkBytes: 128, MaxChunkBytes: 128})
	other := New(alloctest.New(t), nil)
	defer a.Close()
	defer other.Close()
	theirs := freehold.Must(other.Alloc(8, 8))
	var ours [][]byte
	for range 20 {
		ours = append(ours, freehold.Must(a.Alloc(32, 8)))
	}
	for _, b := range [][]byte{theirs, make([]byte, 8)} {
		want := "freehold: arena.Arena.Free: 8 bytes at ..., which this arena did not hand out; was it moved by append?"
		wantPanic(t, want, func() { a.Free(b) })
		wantPanic(t, "freehold: arena.Arena.Resize: 8 bytes at ..., which this arena did not hand out; was it moved by append?", func() { a.Resize(b, 4) })
		if a.Owns(b) {
			t.Error("owns what is not its")
		}
	}
	newest := ours[len(ours)-1]
	a.Free(newest)
	wantPanic(t, "freehold: arena.Arena.Free: 32 bytes at ..., a block that has ended", func() { a.Free(newest) })
	for _, b := range ours[:len(ours)-1] {
		if !a.Owns(b) {
			t.Error("does not own its block")
		}
		a.Free(b)
	}
	wantPanic(t, "freehold: arena.Arena.Free: 32 bytes at ..., and no block is live", func() { a.Free(ours[0]) })
	wantPanic(t, "freehold: arena.Arena.Free: 0 bytes at ... with a capacity of 32: a block is freed whole", func() { a.Free(ours[0][:0]) })
	a.Free(make([]byte, 0, 8)) // not ours
}

// The slice begins before the chunk, and ends where the newest block ends.
func TestFreeOfWhatBeginsBeforeTheChunk(t *testing.T) {
	buf := make([]byte, 200)
	a := NewFixed(buf[100:])
	defer a.Close()
	b := freehold.Must(a.Alloc(50, 1))
	wantPanic(t, "freehold: arena.Arena.Free: 51 bytes at ..., which this arena did not hand out; was it moved by append?", func() { a.Free(buf[99:150]) })
	if a.Live() != 1 || a.Remaining() != 50 {
		t.Errorf("%d live blocks, and %d bytes remain", a.Live(), a.Remaining())
	}
	a.Free(b)
}

func TestResize(t *testing.T) {
	a := New(alloctest.New(t), &Options{ChunkBytes: 256, MaxChunkBytes: 256})
	defer a.Close()
	first := freehold.Must(a.Alloc(64, 8))
	newest := freehold.Must(a.Alloc(64, 8))
	grown, ok := a.Resize(newest, 192)
	if !ok || addressOf(grown) != addressOf(newest) || len(grown) != 192 || cap(grown) != 192 {
		t.Errorf("the newest block does not grow: %t, %d bytes", ok, len(grown))
	}
	if _, ok := a.Resize(grown, 193); ok {
		t.Error("grows beyond its chunk")
	}
	if r, ok := a.Resize(first, 65); ok || r != nil {
		t.Error("an older block grows")
	}
	first, ok = a.Resize(first, 10)
	if !ok || len(first) != 10 || cap(first) != 10 {
		t.Errorf("an older block does not shrink: %t, %d bytes", ok, len(first))
	}
	shrunk, ok := a.Resize(grown, 32)
	if !ok || cap(shrunk) != 32 || a.Stats().LiveBytes != 96 {
		t.Errorf("the newest block does not shrink: %t, %+v", ok, a.Stats())
	}
	a.check(t)
	if r, ok := a.Resize(shrunk, 0); !ok || r == nil || a.Live() != 1 || a.Stats().LiveBytes != 64 {
		t.Errorf("Resize to 0: %t, %+v", ok, a.Stats())
	}
	a.check(t)
}

// TestTrimToLessThanTheFirstChunk: after ristretto's TrimTo with less than its
// first buffer, the next Allocate never returns.
func TestTrimToLessThanTheFirstChunk(t *testing.T) {
	for _, keep := range []int{0, 1, 4095, 4096, 4097, 12288, math.MaxInt} {
		parent := &recorder{Allocator: alloctest.New(t)}
		a := New(parent, nil)
		for range 2 {
			for i := range 3000 {
				b := freehold.Must(a.Zeroed(8, 8))
				setAll(b, byte(i))
			}
			used := a.Stats()
			a.TrimTo(keep) // no spare chunk: nothing is given back
			if a.Stats() != used {
				t.Errorf("TrimTo(%d) of chunks in use: %+v, was %+v", keep, a.Stats(), used)
			}
			a.Reset()
			a.TrimTo(keep)
			if got := a.Stats().Reserved; got > keep {
				t.Errorf("TrimTo(%d) keeps %d bytes", keep, got)
			}
			a.check(t)
		}
		a.Close()
		if len(parent.sizes) != parent.frees {
			t.Errorf("%d chunks and %d frees", len(parent.sizes), parent.frees)
		}
	}
}

// TestEmptiedArenaBeginsSmall: without chunks an arena is as after New.
func TestEmptiedArenaBeginsSmall(t *testing.T) {
	parent := &recorder{Allocator: alloctest.New(t)}
	a := New(parent, nil)
	defer a.Close()
	for range 2 {
		parent.sizes = nil
		for range 100 {
			freehold.Must(a.Alloc(1000, 8))
		}
		if parent.sizes[0] != 4096 || len(parent.sizes) < 2 {
			t.Errorf("chunks %v", parent.sizes)
		}
		a.Reset()
		a.Trim()
	}
}

// TestChunksBeginAtCacheLines: two arenas never share a cache line.
func TestChunksBeginAtCacheLines(t *testing.T) {
	r := &alignRecorder{alloctest.New(t), 1 << 30}
	a := New(r, nil)
	defer a.Close()
	freehold.Must(a.Alloc(1, 1))
	freehold.Must(a.Alloc(5000, 2))
	if r.least != 64 {
		t.Errorf("chunks at multiples of %d", r.least)
	}
}

func TestReserve(t *testing.T) {
	parent := &recorder{Allocator: alloctest.New(t)}
	a := New(parent, nil)
	defer a.Close()
	for _, size := range []int{0, 100, 5000, 1 << 20} {
		if err := a.Reserve(size); err != nil {
			t.Fatal(err)
		}
		chunks := len(parent.sizes)
		m := a.Mark()
		for range size / 10 {
			freehold.Must(a.Alloc(10, 1))
		}
		if len(parent.sizes) != chunks {
			t.Errorf("after Reserve(%d), %d more chunks", size, len(parent.sizes)-chunks)
		}
		a.Rewind(m)
		a.check(t)
	}
}

func TestUseAfterClose(t *testing.T) {
	parent := &recorder{Allocator: alloctest.New(t)}
	a := New(parent, nil)
	b := freehold.Must(a.Alloc(8, 8))
	m := a.Mark()
	a.Close()
	a.Close()
	if parent.frees != len(parent.sizes) {
		t.Errorf("%d frees", parent.frees)
	}
	for call, use := range callsOf(a, b, m) {
		wantPanic(t, "freehold: arena."+call+": the arena is closed", use)
	}
	a.Free(nil)
	if a.Owns(b) || a.Stats() != (Stats{}) || a.Live() != 0 {
		t.Errorf("%+v", a.Stats())
	}
}

// callsOf returns the calls that an arena must be open for, by their names.
func callsOf(a *Arena, b []byte, m Mark) map[string]func() {
	return map[string]func(){
		"Arena.Alloc":   func() { a.Alloc(8, 8) },
		"Arena.Zeroed":  func() { a.Zeroed(0, 1) },
		"Arena.Free":    func() { a.Free(b) },
		"Arena.Resize":  func() { a.Resize(b, 4) },
		"Arena.Mark":    func() { a.Mark() },
		"Arena.Rewind":  func() { a.Rewind(m) },
		"Arena.Reset":   a.Reset,
		"Arena.Trim":    a.Trim,
		"Arena.TrimTo":  func() { a.TrimTo(0) },
		"Arena.Reserve": func() { a.Reserve(0) },
	}
}

// TestZeroedClearsNothingTwice: Zeroed does not clear zero memory of the parent.
func TestZeroedClearsNothingTwice(t *testing.T) {
	parent := &recorder{Allocator: alloctest.New(t)}
	a := New(parent, nil)
	defer a.Close()
	freehold.Must(a.Zeroed(8, 8))
	if parent.zeroed != 1 && !a.checked {
		t.Error("the chunk for a Zeroed is not zeroed")
	}
	if a.zeroTo != a.end && !a.checked {
		t.Error("a fresh chunk is not known to be zero")
	}
	a.Reset()
	for range 100 {
		b := freehold.Must(a.Zeroed(8, 8))
		setAll(b, 0xFF)
		a.check(t)
	}
	if a.zeroTo != a.end && !a.checked {
		t.Error("what is beyond used memory is not known to be zero")
	}
}

func setAll(b []byte, c byte) {
	for i := range b {
		b[i] = c
	}
}
