package watch_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/watch"
)

// What is wrong with a slice of a watched block is found and named as for any other, with the
// stacks that are known, and the block stays watched.
func TestMisuseOfWatchedBlocks(t *testing.T) {
	eachWay(t, func(t *testing.T) {
		zones := strings.Contains(t.Name(), "/zones")
		guarded := strings.Contains(t.Name(), "/guarded")
		inStacks := "freehold: "
		if guarded {
			inStacks = "\nallocated at:\n\t"
		}
		for _, size := range []int{100, 100000} {
			h := newHeap(t, Options{Name: fmt.Sprint(nameOf(t), size)})
			other := newHeap(t, Options{})
			alloc(t, other, 50)
			b := allocHere(h, size)
			pointer := func(b []byte) unsafe.Pointer { return unsafe.Pointer(&b[0]) }
			calls := map[string]func(b []byte){
				"Heap.Free":   h.Free,
				"Heap.Resize": func(b []byte) { h.Resize(b, 10) },
			}
			byPointer := map[string]func(b []byte){
				"Heap.FreePointer":    func(b []byte) { h.FreePointer(pointer(b)) },
				"Heap.ReallocPointer": func(b []byte) { h.ReallocPointer(pointer(b), 10) },
				"Heap.UsableSize":     func(b []byte) { h.UsableSize(pointer(b)) },
			}
			wrong := func(calls map[string]func(b []byte), b []byte, want ...string) {
				t.Helper()
				for name, call := range calls {
					got := panicOf(func() { call(b) })
					if !strings.HasPrefix(got, fmt.Sprintf(`freehold: %s: %p on heap %q: `, name, b, h.Stats().Name)) {
						t.Errorf("panic %q, want one of %s", got, name)
					}
					for _, s := range want {
						if !strings.Contains(got, s) {
							t.Errorf("panic %q, want %q", got, s)
						}
					}
					check(t, h)
				}
			}
			wrong(calls, b[:size-1], fmt.Sprintf("it has %d bytes, the block %d; a block is freed whole", size-1, size))
			wrong(calls, at(b, 8, size), "it points 8 bytes into a block of "+arg.Bytes(size))
			for _, calls := range []map[string]func(b []byte){calls, byPointer} {
				wrong(calls, b[8:], fmt.Sprintf("it points 8 bytes into a block of %s", arg.Bytes(size)))
			}
			if guarded {
				wrong(calls, behind(b, 4), "it is not in a block, but next to one of "+arg.Bytes(size), inStacks)
				wrong(calls, at(b, -8, 8), "it is not in a block, but next to one of "+arg.Bytes(size), inStacks)
			}
			for _, call := range []func(){func() { other.Free(b) }, func() { other.Resize(b, 5) }} {
				mustPanic(t, call, "belongs to another heap")
			}
			if watch.SampleRate() > 0 {
				wantUsage(t, h.Stats().Name, 1, int64(size), 0, 0)
			}
			freeHere(h, b)
			want := []string{"double free"}
			if zones {
				want = []string{fmt.Sprintf("the block of %s was freed before (double free)\n\tallocated at:\n", arg.Bytes(size)), "watch_test.allocHere\n", "\n\tfreed at:\n", "watch_test.freeHere\n"}
				wrong(calls, b[:10], want...)
			} else if guarded {
				want = []string{"the block is free; it was freed before (double free)\nallocated at:\n\t", "watch_test.allocHere\n", "\nfreed at:\n\t", "watch_test.freeHere\n"}
				wrong(calls, b[8:], "the block is free; it was freed before (double free), or never allocated", "watch_test.freeHere\n")
			}
			wrong(calls, b, want...)
			wrong(byPointer, b, want...)
			if watch.SampleRate() > 0 {
				wantUsage(t, h.Stats().Name, 1, int64(size), 1, int64(size))
			}
		}
	})
}

// Two goroutines free one block: one panics.
func TestWatchedBlockIsFreedOnce(t *testing.T) {
	eachWay(t, func(t *testing.T) {
		if !strings.Contains(t.Name(), "/zones") && !strings.Contains(t.Name(), "/guarded") {
			return // nobody watches what is free
		}
		h := newHeap(t, Options{})
		for range 300 {
			b := alloc(t, h, 64)
			var panics [2]string
			var wg sync.WaitGroup
			for i := range panics {
				wg.Go(func() { panics[i] = panicOf(func() { h.Free(b) }) })
			}
			wg.Wait()
			if (panics[0] == "") == (panics[1] == "") {
				t.Fatalf("panics %q", panics)
			}
		}
	})
}

// Each call treats a watched block as its comment says, with its contents, and the figures are
// of the user's blocks.
func TestCallsOnWatchedBlocks(t *testing.T) {
	eachWay(t, func(t *testing.T) {
		h := newHeap(t, Options{Name: nameOf(t)})
		var allocs, allocBytes, frees, freeBytes int64
		count := func(from, to int) { // a block of from bytes becomes one of to
			t.Helper()
			if to > 0 {
				allocs, allocBytes = allocs+1, allocBytes+int64(to)
			}
			if from > 0 {
				frees, freeBytes = frees+1, freeBytes+int64(from)
			}
			if watch.SampleRate() > 0 {
				wantUsage(t, h.Stats().Name, allocs, allocBytes, frees, freeBytes)
			}
			st := h.Stats()
			live, bytes := st.LargeBlocks, st.LargeBytes
			for _, c := range st.Classes {
				live += c.Blocks
				bytes += c.Blocks * c.Size
				if c.Cached < 0 || c.Blocks < 0 {
					t.Errorf("%+v", c)
				}
			}
			if st.Guarded > 0 { // these are in no class
				live, bytes = st.Blocks, st.Allocated
			}
			if want := int(allocs - frees); st.Blocks != want || live != want || st.Allocated != bytes || (st.LargeBlocks == 0) != (st.LargeBytes == 0) {
				t.Errorf("%+v, want %d blocks", st, want)
			}
			check(t, h)
		}
		for _, size := range []int{1, 100, 1000, 32 << 10, 32<<10 + 1, 100_000} {
			good := h.GoodSize(size)
			if again := h.GoodSize(good); good < size || again != good {
				t.Errorf("GoodSize(%d) is %d, of that %d", size, good, again)
			}
			p := h.Calloc(1, size)
			count(0, size)
			b := unsafe.Slice((*byte)(p), size)
			if !allSet(b, 0) || h.UsableSize(p) != size || uintptr(p)%16 != 0 {
				t.Errorf("%d of %d bytes at %p are usable, or not zero", h.UsableSize(p), size, p)
			}
			fill(b, 7)
			p = h.ReallocPointer(p, 2*size)
			count(size, 2*size)
			if b = unsafe.Slice((*byte)(p), 2*size); !allSet(b[:size], 7) || h.UsableSize(p) != 2*size {
				t.Errorf("%d of %d bytes are usable, or changed", h.UsableSize(p), 2*size)
			}
			fill(b, 8)
			if r, ok := h.Resize(b, 2*size); ok && &r[0] == &b[0] {
				count(2*size, 2*size)
			} else if size > 1 { // a class of 8 bytes is too large for 2
				t.Errorf("a block of %d bytes cannot keep its size", 2*size)
			}
			r, ok := h.Resize(b, 2*size-1)
			if h.Stats().Guarded > 0 && ok {
				t.Error("a guarded block was resized")
			}
			if ok {
				count(2*size, 2*size-1)
				b = r
			}
			if !allSet(b, 8) || cap(r) != len(r) {
				t.Errorf("changed by Resize to %d of %d bytes", len(r), cap(r))
			}
			size = len(b)
			if r, ok := h.Resize(b, 0); !ok || len(r) != 0 {
				t.Error("not freed")
			}
			count(size, 0)
			b, err := h.Alloc(size, 1, true)
			if err != nil || !h.Owns(b) || !allSet(b, 0) || cap(b) != size {
				t.Fatalf("%v, or not zero", err)
			}
			count(0, size)
			h.Free(b)
			count(size, 0)
		}
		if n := h.GoodSize(0); n != 0 {
			t.Errorf("GoodSize(0) is %d", n)
		}
		if b, err := h.Alloc(0, 1, false); err != nil || len(b) != 0 {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		if live, _, _ := h.Watch().Count(); live != 0 {
			t.Errorf("%d records of live blocks", live)
		}
		h.Trim()
		if st := h.Stats(); st.Blocks != 0 || st.Active != 0 || st.Committed != st.Metadata {
			t.Errorf("after Trim: %+v", st)
		}
	})
}
