package heap

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/test/pintest"
	"github.com/freehold-go/freehold/internal/watch"
)

func TestLeavesTakeNoPins(t *testing.T) {
	type leaves struct { // malloc calls one of these
		alloc       func(h *Heap, size, align int, zero bool) ([]byte, error)
		free        func(h *Heap, b []byte)
		freePointer func(h *Heap, p unsafe.Pointer)
	}
	pintest.LeavesTakeNoPins(t, leaves{inGo.alloc, inGo.free, inGo.freePointer}, leaves{allocPinned, freePinned, freePointerPinned})
	pintest.LeavesTakeNoPins(t, inGo.runFunctions, pinnedRuns)
}

// eachPath runs a test with assembly, where it runs, with leaves, and with pins. f is what
// Alloc and Free call.
func eachPath(t *testing.T, test func(t *testing.T, f *functions)) {
	t.Run("called", func(t *testing.T) {
		test(t, &functions{(*Heap).Alloc, (*Heap).Malloc, (*Heap).Free, (*Heap).FreePointer})
	})
	t.Run("in Go", func(t *testing.T) { test(t, &inGo.functions) })
	t.Run("pinned", func(t *testing.T) {
		Pin(t)
		test(t, &inGo.functions)
	})
}

var countedSizes = []int{8, 100, 4096, small.MaxSize, 100 << 10}

// Each path counts down by the size and the extra bytes of each block, small or large. It clears
// used memory.
func TestEachPathCountsBlocks(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that there is one cache
	const from, extra = 1 << 40, 1000
	SampleAt(t, 1)
	watch.Countdown.Rate.Store(1 << 48) // no block is an event
	watch.Countdown.Extra.Store(extra)
	eachPath(t, func(t *testing.T, f *functions) {
		h := newHeap(t, Options{Decay: never})
		want := int64(0)
		use := func() {
			want = 0
			for _, size := range countedSizes {
				b, err := f.alloc(h, size, 8, true)
				if err != nil || !allSet(b, 0) {
					t.Fatalf("%d bytes: no block, or not zero: %v", size, err)
				}
				fill(b, 1)
				f.free(h, b)
				f.freePointer(h, f.malloc(h, size))
				want += 2 * int64(size+extra)
			}
		}
		use() // makes the cache, and what it keeps
		h.caches.Each(func(c *cache) { c.left = from })
		use()
		counted := int64(0)
		h.caches.Each(func(c *cache) { counted += from - c.left })
		if counted != want {
			t.Errorf("%d bytes are counted, want %d", counted, want)
		}
	})
}

// The slow path ends the countdown at the same block as the leaves: the first that takes it below 0.
func TestCountdownEndsBelowZero(t *testing.T) {
	for left, want := range map[int64]bool{-1: true, 0: false, 1: false} {
		c := cache{left: left} // nothing is counted now, so a block leaves left as it is
		if c.due(8) != want || want != (c.left != left) {
			t.Errorf("due with %d bytes left is %v, and leaves %d", left, !want, c.left)
		}
	}
}

// The block at which the countdown ends is watched.
func TestEachPathHasEventsWatched(t *testing.T) {
	SampleAt(t, 1)
	eachPath(t, func(t *testing.T, f *functions) {
		h := newHeap(t, Options{})
		for _, size := range append(countedSizes, countedSizes...) { // by slow paths, and then by caches
			b, err := f.alloc(h, size, 8, false)
			if err != nil || !isWatched(small.SpanAt(small.AddrOf(b)), h.pages.ID, small.AddrOf(b)) {
				t.Errorf("a block of %d bytes is not watched: %v", size, err)
			}
			h.Free(b)
			p := f.malloc(h, size)
			if !isWatched(small.SpanAt(uintptr(p)), h.pages.ID, uintptr(p)) {
				t.Errorf("Malloc of %d bytes is not watched", size)
			}
			f.freePointer(h, p)
		}
	})
}

// Bad arguments panic, though the caches have a small block and a run that would do.
func TestEachPathRefusesBadArguments(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that there is one cache
	eachPath(t, func(t *testing.T, f *functions) {
		h := newHeap(t, Options{Decay: never})
		for _, size := range []int{64, 64 << 10, maxKeptPages * pages.PageBytes} {
			use := func() { f.free(h, alloc(t, h, size)) }
			use() // makes the cache
			use()
			for _, align := range []int{math.MinInt, -8, 0, 3, 6, 7, 24, 3000, 6144} {
				if got := panicOf(func() { f.alloc(h, size, align, false) }); !strings.Contains(got, "want a power of two") {
					t.Errorf("%d bytes at a multiple of %d: panic %q", size, align, got)
				}
			}
			for _, size := range []int{-1, -8, -8192, math.MinInt} {
				if got := panicOf(func() { f.alloc(h, size, 1, false) }); !strings.Contains(got, "want 0 or more") {
					t.Errorf("%d bytes: panic %q", size, got)
				}
			}
		}
	})
}

// A pointer into a block is not one, whatever the length of the slice. In the first block of a span
// the offset 1 is where a comparison may be off by one.
func TestEachPathFindsWhereABlockBegins(t *testing.T) {
	eachPath(t, func(t *testing.T, f *functions) {
		h := newHeap(t, Options{Decay: never})
		for class := range small.NumClasses - 1 {
			size := small.ClassSize(uint8(class + 1))
			b := alloc(t, h, size)
			for small.AddrOf(b) != small.SpanAt(small.AddrOf(b)).Base {
				b = alloc(t, h, size)
			}
			for _, at := range []int{1, 2, size / 2, size - 1} {
				p := unsafe.Pointer(&b[at])
				byLength := panicOf(func() { f.free(h, unsafe.Slice((*byte)(p), size)) })
				if byPointer := panicOf(func() { f.freePointer(h, p) }); byLength == "" || byPointer == "" {
					t.Fatalf("byte %d of a block of %d: panics %q and %q", at, size, byLength, byPointer)
				}
			}
			f.free(h, b)
		}
	})
}

// Blocks of the cache have room for the size, and the alignment.
func TestEachPathFindsTheClass(t *testing.T) { eachPath(t, findsTheClass) }

func findsTheClass(t *testing.T, f *functions) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that there is one cache
	h := newHeap(t, Options{Decay: never})
	for class := range small.NumClasses - 1 {
		for range 2 { // the first block makes the cache
			h.Free(alloc(t, h, small.ClassSize(uint8(class+1))))
		}
	}
	h.caches.Each(func(c *cache) { c.left = 1 << 40 }) // no sample is due
	for class := range small.NumClasses - 1 {
		most := small.ClassSize(uint8(class + 1))
		for size := max(most-17, 1); size <= most; size++ {
			check := func(p unsafe.Pointer, align int) {
				if s := small.SpanAt(uintptr(p)); int(s.Size) < size || uintptr(p)%uintptr(align) != 0 {
					t.Errorf("%d bytes at a multiple of %d: %p in a block of %d", size, align, p, s.Size)
				}
				f.freePointer(h, p)
			}
			for align := 1; align <= small.MaxAlign; align *= 2 {
				b, _ := f.alloc(h, size, align, false)
				check(unsafe.Pointer(unsafe.SliceData(b)), align)
			}
			check(f.malloc(h, size), mallocAlign)
		}
	}
}
