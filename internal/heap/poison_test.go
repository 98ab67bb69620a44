//go:build !asan

// Checked blocks: what they find, and when.

package heap

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
)

// CheckBlocks makes the heaps of a test check their blocks, as FREEHOLD_DEBUG=quarantine=BYTES
// does from the start of a program on.
func CheckBlocks(t testing.TB, bytes int) {
	set := func(bytes int) {
		quarantineBytes = bytes
		chooseEntries()
		countInAssembly(SampleRate() > 0)
	}
	was := quarantineBytes
	set(bytes)
	t.Cleanup(func() { set(was) })
}

// behind returns n bytes from the end of b on.
func behind(b []byte, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), len(b))), n)
}

func mustPanic(t *testing.T, f func(), want ...string) {
	t.Helper()
	got := panicOf(f)
	if len(want) > 0 && got == "" {
		t.Fatal("no panic")
	}
	for _, s := range want {
		if !strings.Contains(got, s) {
			t.Fatalf("panic %q, want %q", got, s)
		}
		got = got[strings.Index(got, s)+len(s):]
	}
}

//go:noinline
func allocHere(h *Heap, size int) []byte {
	b, err := h.Alloc(size, 8, false)
	if err != nil {
		panic(err)
	}
	return b
}

//go:noinline
func freeHere(h *Heap, b []byte) { h.Free(b) }

func TestWriteBeyondTheEndIsFoundByFree(t *testing.T) {
	CheckBlocks(t, 1<<20)
	free := map[string]func(h *Heap, b []byte){
		"Free":           (*Heap).Free,
		"FreePointer":    func(h *Heap, b []byte) { h.FreePointer(unsafe.Pointer(&b[0])) },
		"Resize":         func(h *Heap, b []byte) { h.Resize(b, len(b)-1) },
		"Resize to 0":    func(h *Heap, b []byte) { h.Resize(b, 0) },
		"ReallocPointer": func(h *Heap, b []byte) { h.ReallocPointer(unsafe.Pointer(&b[0]), 10*len(b)) },
		"of a cache": func(h *Heap, b []byte) {
			var o LocalCache
			o.Init(h)
			defer o.Close()
			o.Free(b)
		},
	}
	for name, f := range free {
		for _, size := range []int{1, 7, 64, 1000, maxSmall, 100_000, 128 << 10} {
			for _, beyond := range []int{1, 3, redBytes} {
				h := newHeap(t, Options{Name: "guilty"})
				b := allocHere(h, size)
				fill(b, 9)
				red := behind(b, redBytes)
				was := red[beyond-1]
				red[beyond-1] = 0
				for range 2 { // the block stays live
					mustPanic(t, func() { f(h, b) },
						fmt.Sprintf(`freehold: heap "guilty": the block of %s at %p was written %s beyond its end`, arg.Bytes(size), b, arg.Bytes(beyond)),
						"\n\tallocated at:\n\t\tgithub.com/freehold-go/freehold/internal/heap.allocHere\n\t\t\t", "poison_test.go:", "TestWriteBeyondTheEndIsFoundByFree")
				}
				red[beyond-1] = was
				if got := panicOf(func() { f(h, b) }); got != "" {
					t.Errorf("%s: %s", name, got)
				}
				h.Close()
			}
		}
	}
}

// A write after Free is found by the call that makes the block leave the quarantine.
func TestWriteAfterFreeIsFoundByWhoeverIsNext(t *testing.T) {
	const size, quarantine = 100, 4096
	CheckBlocks(t, quarantine)
	tests := map[string]func(h *Heap){
		"Trim":  (*Heap).Trim,
		"Close": (*Heap).Close,
		"Free": func(h *Heap) {
			for range quarantine / size {
				h.Free(alloc(t, h, size))
			}
		},
		"Free of a cache": func(h *Heap) {
			var o LocalCache
			o.Init(h)
			defer o.Close()
			for range quarantine / size {
				o.Free(alloc(t, h, size))
			}
		},
		"Resize to 0": func(h *Heap) { h.Resize(alloc(t, h, quarantine-redBytes), 0) },
		"Alloc without memory": func(h *Heap) {
			for {
				if _, err := h.Alloc(size, 8, false); err != nil {
					t.Fatalf("%v, and the quarantine is full", err)
				}
			}
		},
	}
	for name, find := range tests {
		for _, at := range []int{0, 7, size - 1, size + redBytes - 1} {
			t.Run(fmt.Sprint(name, at), func(t *testing.T) {
				h := newHeap(t, Options{Name: "guilty", MaxBytes: 1 << 20})
				b := allocHere(h, size)
				freeHere(h, b)
				unsafe.Slice(&b[0], size+redBytes)[at]++
				mustPanic(t, func() { find(h) },
					fmt.Sprintf(`freehold: heap "guilty": byte %d of the block of 100 bytes at %p was written after its Free`, at, b),
					"\n\tallocated at:\n", "internal/heap.allocHere\n", "\n\tfreed at:\n", "internal/heap.freeHere\n")
				if name == "Close" {
					if !h.Closed() {
						t.Error("the heap is open")
					}
					return
				}
				if got := panicOf(h.Trim); got != "" {
					t.Errorf("a second panic: %s", got)
				}
			})
		}
	}
}

func TestDoubleFreeNamesBothStacks(t *testing.T) {
	CheckBlocks(t, 1<<20)
	h := newHeap(t, Options{Name: "guilty"})
	for call, again := range map[string]func(b []byte){
		"Heap.Free":           h.Free,
		"Heap.FreePointer":    func(b []byte) { h.FreePointer(unsafe.Pointer(&b[0])) },
		"Heap.Resize":         func(b []byte) { h.Resize(b, 10) },
		"Heap.UsableSize":     func(b []byte) { h.UsableSize(unsafe.Pointer(&b[0])) },
		"Heap.ReallocPointer": func(b []byte) { h.ReallocPointer(unsafe.Pointer(&b[0]), 10) },
		"Cache.Free": func(b []byte) {
			var o LocalCache
			o.Init(h)
			defer o.Close()
			o.Free(b)
		},
	} {
		for _, size := range []int{64, 100_000} {
			b := allocHere(h, size)
			freeHere(h, b)
			mustPanic(t, func() { again(b) },
				fmt.Sprintf(`freehold: %s: %p on heap "guilty": the block of %d bytes was freed before (double free)`, call, b, size),
				"allocated at:\n", "heap.allocHere\n", "freed at:\n", "heap.freeHere\n")
		}
	}
	b := allocHere(h, 64)
	freeHere(h, b)
	mustPanic(t, func() { h.Free(b[:10]) }, "the block of 64 bytes was freed before")
}

// Free fills the block, and Alloc hands it out zeroed if that is asked for.
func TestFreedBlockHoldsTheFill(t *testing.T) {
	CheckBlocks(t, 1<<20)
	h := newHeap(t, Options{})
	for _, size := range []int{1, 100, 40_000, 200_000} {
		for range 30 {
			b, err := h.Alloc(size, 8, true)
			if err != nil || !allSet(b, 0) {
				t.Fatalf("%d bytes: %v, %x", size, err, b[:1])
			}
			fill(b, 1)
			h.Free(b)
			if !allSet(b, poisonByte) {
				t.Fatalf("%d bytes hold %x after Free", size, b[:1])
			}
		}
	}
}

// A block that the quarantine cannot hold is freed at once, and not filled.
func TestQuarantineIsBounded(t *testing.T) {
	const bound = 1 << 16
	CheckBlocks(t, bound)
	h := newHeap(t, Options{})
	for i := range 3000 {
		h.Free(alloc(t, h, 1+i%300))
		if held := h.checks.held; held > bound || i > 1000 && held < bound-300-redBytes {
			t.Fatalf("%d bytes in a quarantine of %d", held, bound)
		}
	}
	b := alloc(t, h, bound)
	held := h.checks.held
	h.Free(b)
	if h.checks.held != held {
		t.Error("a block larger than the quarantine got there")
	}
	mustPanic(t, func() { h.Free(b) }, "double free")
	h.Trim()
	if c := h.checks; c.held != 0 || len(c.queue) != 0 || len(c.blocks) != 0 {
		t.Errorf("after Trim: %d bytes, %d blocks in quarantine, %d known", c.held, len(c.queue), len(c.blocks))
	}
}

// Quarantine never makes a heap refuse.
func TestQuarantineEndsBeforeMemoryDoes(t *testing.T) {
	CheckBlocks(t, 1<<30)
	h := newHeap(t, Options{MaxBytes: 2 << 20})
	for i := range 300 {
		h.Free(alloc(t, h, 1+i*1000))
	}
	if st := h.Stats(); st.Refusals != 0 {
		t.Errorf("%d refusals", st.Refusals)
	}
	if _, err := h.Alloc(3<<20, 8, false); err == nil {
		t.Error("3 MiB of 2")
	}
	if st := h.Stats(); st.Refusals != 1 {
		t.Errorf("%d refusals, want 1", st.Refusals)
	}
}

// Live figures are of the user's blocks.
func TestStatsOfCheckedBlocks(t *testing.T) {
	CheckBlocks(t, 1<<20)
	h := newHeap(t, Options{})
	small, large := alloc(t, h, 100), alloc(t, h, 100_000)
	check := func(blocks, largeBlocks int) {
		t.Helper()
		st := h.Stats()
		live, bytes := 0, 0
		for _, c := range st.Classes {
			live += c.Blocks
			bytes += c.Blocks * c.Size
			if c.Cached < 0 || c.Blocks < 0 {
				t.Errorf("%+v", c)
			}
		}
		if st.Blocks != blocks || st.LargeBlocks != largeBlocks || live != blocks-largeBlocks || st.Allocated != bytes+st.LargeBytes || (st.LargeBytes == 0) != (largeBlocks == 0) {
			t.Errorf("%+v, want %d blocks, of which %d are large", st, blocks, largeBlocks)
		}
	}
	check(2, 1)
	h.Free(small)
	check(1, 1)
	h.Free(large)
	check(0, 0)
}

// Samples are of the user's bytes, and end with Free, not with the quarantine.
func TestSamplesOfCheckedBlocks(t *testing.T) {
	CheckBlocks(t, 1<<20)
	sampleAt(t, 1)
	h := newHeap(t, Options{Name: t.Name()})
	for _, size := range []int{100, 100_000} {
		before := usage(t.Name())
		b := alloc(t, h, size)
		wantUsage(t, t.Name(), before.AllocObjects+1, before.AllocBytes+int64(size), before.FreeObjects, before.FreeBytes)
		h.Free(b)
		wantUsage(t, t.Name(), before.AllocObjects+1, before.AllocBytes+int64(size), before.FreeObjects+1, before.FreeBytes+int64(size))
	}
}

func TestSizesOfCheckedBlocks(t *testing.T) {
	CheckBlocks(t, 1<<20)
	h := newHeap(t, Options{})
	for _, size := range []int{1, 100, maxSmall, maxSmall + 1, 100_000} {
		good := h.GoodSize(size)
		if again := h.GoodSize(good); good < size || again != good {
			t.Errorf("GoodSize(%d) is %d, of that %d", size, good, again)
		}
		p := h.Malloc(size)
		if n := h.UsableSize(p); n != size {
			t.Errorf("%d of %d bytes are usable", n, size)
		}
		q := h.ReallocPointer(p, size+1)
		if n := h.UsableSize(q); n != size+1 {
			t.Errorf("%d of %d bytes are usable", n, size+1)
		}
		h.FreePointer(q)
	}
	if n := h.GoodSize(0); n != 0 {
		t.Errorf("GoodSize(0) is %d", n)
	}
	for _, size := range []int{maxSize, maxSize - redBytes, maxSize + 1} {
		if _, err := h.Alloc(size, 1, false); err == nil {
			t.Errorf("%d bytes", size)
		}
	}
}

// Resize keeps the block in place where the engine can.
func TestResizeOfCheckedBlocks(t *testing.T) {
	CheckBlocks(t, 1<<20)
	h := newHeap(t, Options{})
	for _, sizes := range [][2]int{{100, 90}, {40_000, 200_000}, {200_000, 100_000}, {3 << 20, 9 << 20}} {
		b := alloc(t, h, sizes[0])
		fill(b, 7)
		r, ok := h.Resize(b, sizes[1])
		if !ok {
			if sizes[1] <= sizes[0] {
				t.Errorf("%d: not in place", sizes)
			}
			h.Free(b)
			continue
		}
		if !allSet(r[:min(sizes[0], sizes[1])], 7) || len(r) != sizes[1] || cap(r) != sizes[1] {
			t.Errorf("%d: %d bytes of %d", sizes, len(r), cap(r))
		}
		behind(r, 1)[0]++
		mustPanic(t, func() { h.Free(r) }, "beyond its end")
		behind(r, 1)[0]--
		h.Free(r)
	}
	b := alloc(t, h, 100)
	if _, ok := h.Resize(b, 5000); ok {
		t.Error("100 bytes became 5000 in place")
	}
	if _, ok := h.Resize(b, maxSize); ok {
		t.Error("100 bytes became all")
	}
	h.Free(b)
}

// The same mistakes are named as in blocks that are not checked.
func TestMisuseOfCheckedBlocksIsNamed(t *testing.T) {
	CheckBlocks(t, 1<<20)
	testMisuseIsNamed(t)
}

// Two goroutines free one block: one panics.
func TestCheckedBlockIsFreedOnce(t *testing.T) {
	CheckBlocks(t, 1<<14)
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
}

// Heaps of the package's own are not checked.
func TestBookkeepingIsNotChecked(t *testing.T) {
	CheckBlocks(t, 1<<20)
	h := makeHeap(Options{Unsampled: true, Decay: -1})
	defer h.Close()
	b := alloc(t, h, 100)
	h.Free(b)
	if got := alloc(t, h, 100); h.checks != nil || &got[0] != &b[0] {
		t.Error("a block is in quarantine")
	}
}

func BenchmarkPairChecked(b *testing.B) {
	CheckBlocks(b, 1<<20)
	for _, size := range []int{64, 1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			h := makeHeap(Options{})
			defer h.Close()
			for b.Loop() {
				p, _ := h.Alloc(size, 8, false)
				p[0] = 1
				h.Free(p)
			}
		})
	}
}

// A write is found without a call that panics with it, and still by that.
func TestWriteMistakes(t *testing.T) {
	CheckBlocks(t, 1<<20)
	h := newHeap(t, Options{Name: "mistakes"})
	ours := func() (all []string) {
		for _, text := range WriteMistakes() {
			if strings.Contains(text, `heap "mistakes"`) {
				all = append(all, text)
			}
		}
		return all
	}
	live, freed := allocHere(h, 100), allocHere(h, 200)
	freeHere(h, freed)
	if got := ours(); len(got) != 0 {
		t.Errorf("%q", got)
	}
	freed[7]++
	behind(live, 3)[2]++
	for range 2 {
		got := strings.Join(ours(), "\n")
		for _, want := range []string{"byte 7 of the block of 200 bytes at ", "was written after its Free\n\tallocated at:\n", "heap.freeHere\n",
			"the block of 100 bytes at ", "was written 3 bytes beyond its end\n\tallocated at:\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in %s", want, got)
			}
		}
	}
	mustPanic(t, func() { h.Free(live) }, "beyond its end")
	mustPanic(t, func() { h.Trim() }, "after its Free")
	fillPoison(behind(live, 3))
}
