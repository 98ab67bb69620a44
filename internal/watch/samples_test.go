package watch_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/heap"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/watch"
)

// At rate 1 each block is counted, whichever path serves it, and each record is found among
// many.
func TestEveryBlockIsSampledAtRate1(t *testing.T) {
	eachSampled(t, func(t *testing.T) {
		h := newHeap(t, Options{Name: nameOf(t)})
		var blocks [][]byte
		bytes := int64(0)
		for i := range 3000 {
			size := 1 + i*37%5000
			if i%100 == 0 {
				size = 40000 + i
			}
			var b []byte
			var err error
			if i%3 == 1 {
				b, err = h.Alloc(size, 64, true)
			} else {
				b, err = h.Alloc(size, 8, i%3 == 2)
			}
			if err != nil || i%3 > 0 && !allSet(b, 0) {
				t.Fatal(err)
			}
			fill(b, 1)
			blocks = append(blocks, b)
			bytes += int64(size)
		}
		wantUsage(t, nameOf(t), 3000, bytes, 0, 0)
		check(t, h)
		h.Trim()
		rand.New(rand.NewPCG(1, 1)).Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
		for i, b := range blocks {
			if i%3 < 2 {
				h.Free(b)
			} else {
				h.FreePointer(unsafe.Pointer(&b[0]))
			}
		}
		wantUsage(t, nameOf(t), 3000, bytes, 3000, bytes)
		check(t, h)
		if n := live(h); n != 0 {
			t.Errorf("%d records of no block", n)
		}
	})
}

// Resize counts as a Free and an Alloc, in place, moved, and of large blocks. One that
// fails changes nothing.
func TestResizeOfASampledBlock(t *testing.T) {
	eachSampled(t, func(t *testing.T) {
		tests := []struct{ from, to int }{
			{100, 112}, {112, 100}, // within the class
			{100, 10}, {100, 113}, // another class
			{100000, 50000}, {50000, 100000}, {100000, 100001}, {9 << 20, 20 << 20}, {3 << 20, 100},
		}
		for _, tt := range tests {
			name := fmt.Sprint(nameOf(t), tt)
			h := newHeap(t, Options{Name: name})
			b := alloc(t, h, tt.from)
			heap.Tag(b, "tag")
			keep := alloc(t, h, 40000) // so that a large block has a neighbour
			from, to := int64(tt.from), int64(tt.to)
			tagged := watch.Usage{AllocObjects: 1, AllocBytes: from}
			r, ok := h.Resize(b, tt.to)
			if ok {
				tagged.FreeObjects, tagged.FreeBytes = 1, from
				wantUsage(t, name, 2, 40000+to, 0, 0)
			} else {
				wantUsage(t, name, 1, 40000, 0, 0)
				r = b
			}
			if got := usage(name)["tag"]; fmt.Sprint(got) != fmt.Sprint(tagged) {
				t.Errorf("%v: tagged %+v, want %+v", tt, got, tagged)
			}
			check(t, h)
			h.Free(r)
			h.Free(keep)
			check(t, h)
			for _, u := range usage(name) {
				if u.FreeObjects != u.AllocObjects || u.FreeBytes != u.AllocBytes {
					t.Errorf("%v: all is free, and the samples say %+v", tt, u)
				}
			}
			if n := live(h); n != 0 {
				t.Errorf("%v: %d records of no block", tt, n)
			}
		}
	})
}

// Another goroutine frees a block that Resize has taken: Resize panics, and the sample has ended.
func TestResizeOfASampledBlockThatIsFreedMeanwhile(t *testing.T) {
	sampleAt(t, 1)
	for _, size := range []int{100, 100000} {
		h := newHeap(t, Options{Name: fmt.Sprint(nameOf(t), size)})
		b, kept := alloc(t, h, size), watch.Kept()
		h.Watch().OnResize(h.Free)
		mustPanic(t, func() { h.Resize(b, size+8) }, "Heap.Resize", "double free")
		wantUsage(t, h.Stats().Name, 1, int64(size), 1, int64(size))
		if n := watch.Kept(); n != kept+1 {
			t.Errorf("%d records have no block, want %d", n, kept+1)
		}
		check(t, h)
	}
}

// A sample that is resized while none are taken is an ordinary block, and its record for another
// one.
func TestResizeEndsASample(t *testing.T) {
	sampleAt(t, 1)
	h := newHeap(t, Options{Name: nameOf(t)})
	b, kept := alloc(t, h, 100), watch.Kept()
	watch.SetSampleRate(0)
	if r, ok := h.Resize(b, 112); !ok || len(r) != 112 || live(h) != 0 || watch.Kept() != kept+1 {
		t.Errorf("%d bytes, %d records of blocks, %d of none, want %d", len(r), live(h), watch.Kept(), kept+1)
	}
	wantUsage(t, nameOf(t), 1, 100, 1, 100)
}

// A block that is resized may be sampled from then on.
func TestResizeOfAnOrdinaryBlock(t *testing.T) {
	sampleAt(t, 0)
	h := newHeap(t, Options{Name: nameOf(t)})
	for _, size := range []int64{100, 100000} {
		b := alloc(t, h, int(size))
		watch.SetSampleRate(1)
		if _, ok := h.Resize(b, int(size)+8); !ok {
			t.Fatalf("%d bytes cannot become %d in place", size, size+8)
		}
		watch.SetSampleRate(0)
	}
	wantUsage(t, nameOf(t), 2, 100116, 0, 0)
}

// A block that is resized is sampled with the probability of its size, watched before or not.
func TestResizedBlocksAreSampledBySize(t *testing.T) {
	sampleAt(t, 0)
	const n = 4000
	h := newHeap(t, Options{Name: nameOf(t)})
	var blocks [][]byte
	for range n {
		blocks = append(blocks, alloc(t, h, 1000))
	}
	sampleAt(t, 4096)
	for i, size := range []int{1008, 1000} {
		for j, b := range blocks {
			r, ok := h.Resize(b, size)
			if !ok {
				t.Fatalf("%d bytes cannot become %d in place", len(b), size)
			}
			blocks[j] = r
		}
		allocs := int64(n * (i + 1))
		if u := usage(nameOf(t))[""]; !near(u.AllocObjects, allocs) || !near(u.AllocObjects-u.FreeObjects, n) {
			t.Errorf("%+v, want %d allocated and %d live", u, allocs, n)
		}
	}
}

func near(got, want int64) bool { return got > want-want/8 && got < want+want/8 }

// A closed heap has nothing in use, and another may have its addresses.
func TestCloseEndsSamples(t *testing.T) {
	eachSampled(t, func(t *testing.T) {
		h := newHeap(t, Options{Name: nameOf(t)})
		h.Free(alloc(t, h, 7))
		for i := range 1000 {
			alloc(t, h, 1+i*50)
		}
		h.Close()
		u := usage(nameOf(t))[""]
		if u.AllocObjects != 1001 || u.FreeObjects != 1001 || u.FreeBytes != u.AllocBytes || u.CloseObjects != 1000 || u.CloseBytes != u.FreeBytes-7 {
			t.Errorf("%+v", u)
		}
		again := newHeap(t, Options{Name: nameOf(t) + " again"})
		for i := range 1000 {
			again.Free(alloc(t, again, 1+i*50))
		}
		check(t, again)
	})
}

// Where there is no memory for a record, the block is there and not watched.
func TestNoMemoryForARecord(t *testing.T) {
	sampleAt(t, 1)
	h := newHeap(t, Options{Name: nameOf(t)})
	alloc(t, h, 64)
	for range 2 {
		restore := watch.SetMemory(4096)
		b := alloc(t, h, 64)
		restore()
		wantUsage(t, nameOf(t), 1, 64, 0, 0)
		if n := live(h); n != 1 || len(b) != 64 {
			t.Errorf("%d blocks are watched, and the other one has %d bytes", n, len(b))
		}
		h.Free(b)
		check(t, h)
		keepFreed(t, 1<<20)
	}
}

// Where there is no memory for more chains, those that there are take more records.
func TestNoMemoryForChains(t *testing.T) {
	sampleAt(t, 1)
	h := newHeap(t, Options{Name: nameOf(t)})
	h.Free(alloc(t, h, 64)) // its record is for the next block
	defer watch.FillChains()()
	b := alloc(t, h, 64)
	wantUsage(t, nameOf(t), 2, 128, 1, 64)
	check(t, h)
	h.Free(b)
	wantUsage(t, nameOf(t), 2, 128, 2, 128)
}

//go:noinline
func siteA(t *testing.T, h *Heap) []byte { return alloc(t, h, 64) }

//go:noinline
func siteB(t *testing.T, h *Heap) []byte { return alloc(t, h, 64) }

// Blocks are counted for the function that allocated them.
func TestStackOfASample(t *testing.T) {
	eachSampled(t, func(t *testing.T) {
		h := newHeap(t, Options{Name: nameOf(t)})
		for range 100 {
			siteA(t, h)
			siteB(t, h)
			siteB(t, h)
		}
		count := map[string]int64{}
		for _, u := range watch.Profile() {
			if u.Heap != nameOf(t) {
				continue
			}
			for _, name := range functions(u.Stack) {
				if i := strings.LastIndex(name, ".site"); i >= 0 {
					count[name[i+1:]] += u.AllocObjects
				}
			}
		}
		if len(count) != 2 || count["siteA"] != 100 || count["siteB"] != 200 {
			t.Errorf("%v", count)
		}
	})
}

// functions returns the names of the functions in a stack.
func functions(stack []uintptr) (names []string) {
	frames := runtime.CallersFrames(stack)
	for more := len(stack) > 0; more; {
		var f runtime.Frame
		f, more = frames.Next()
		names = append(names, f.Function)
	}
	return names
}

// Heaps of one name are counted together, and those for whose name there is no room as
// others. A tag for which there is none is not given.
func TestLabels(t *testing.T) {
	sampleAt(t, 1)
	var b []byte
	for range 2 {
		h := newHeap(t, Options{Name: nameOf(t)})
		b = alloc(t, h, 50)
	}
	wantUsage(t, nameOf(t), 2, 100, 0, 0)
	heap.Tag(b, "first")

	defer watch.UseUpLabels()()
	others := usage(watch.OtherHeap)[""].AllocObjects
	h := newHeap(t, Options{Name: nameOf(t) + " late"})
	alloc(t, h, 50)
	if n := usage(watch.OtherHeap)[""].AllocObjects - others; n != 1 {
		t.Errorf("%d blocks of others, want 1", n)
	}
	heap.Tag(b, "late")
	watch.SetSampleRate(0)
	heap.Tag(b, "off")
	if all := usage(nameOf(t)); len(all) != 2 || all["first"].AllocObjects != 1 {
		t.Errorf("%+v", all)
	}
}

// A sampled block counts for its tag alone, the last that it was given, on any path.
func TestTag(t *testing.T) {
	eachSampled(t, func(t *testing.T) {
		for _, size := range []int{64, 5000, 100000} {
			name := fmt.Sprint(nameOf(t), size)
			h := newHeap(t, Options{Name: name})
			var blocks [][]byte
			for range 100 {
				b := alloc(t, h, size)
				heap.Tag(b, "a")
				heap.Tag(b, "a/b")
				heap.Tag(b, "a/b")
				blocks = append(blocks, b)
			}
			untagged := alloc(t, h, size)
			heap.Tag(untagged[:size-1], "part")
			heap.Tag(untagged[1:], "inside")
			if size > pages.PageBytes {
				heap.Tag(untagged[pages.PageBytes:], "inside")
			}
			heap.Tag(nil, "nil")
			heap.Tag([]byte{}, "empty")
			heap.Tag(make([]byte, size), "Go memory")
			for _, b := range blocks[:40] {
				h.Free(b)
			}
			n := int64(size)
			want := map[string]watch.Usage{"a/b": {AllocObjects: 100, AllocBytes: 100 * n, FreeObjects: 40, FreeBytes: 40 * n}, "": {AllocObjects: 1, AllocBytes: n}}
			if got := usage(name); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("size %d: %+v, want %+v", size, got, want)
			}
			check(t, h)
			for _, b := range blocks[40:] {
				h.Free(b)
			}
		}
	})
}

// At other rates the tag has the bytes that the samples represent, and other tags have none.
func TestTagOfSamples(t *testing.T) {
	for _, quarantine := range []int{0, 1 << 20} {
		if quarantine > 0 && !watchesZones {
			continue
		}
		keepFreed(t, quarantine)
		sampleAt(t, 4096)
		name := fmt.Sprint(nameOf(t), quarantine)
		h := newHeap(t, Options{Name: name})
		var blocks [][]byte
		for range 20000 {
			b, err := h.Alloc(1000, 8, false)
			if err != nil {
				t.Fatal(err)
			}
			heap.Tag(b, "tag")
			blocks = append(blocks, b)
		}
		all := usage(name)
		if u := all["tag"]; len(all) != 1 || u.AllocObjects < 17000 || u.AllocObjects > 23000 || u.AllocBytes < 17e6 || u.AllocBytes > 23e6 {
			t.Errorf("%+v, want 20000 blocks of one tag", all)
		}
		for _, b := range blocks {
			h.Free(b)
		}
		if u := usage(name)["tag"]; u.FreeObjects != u.AllocObjects || u.FreeBytes != u.AllocBytes {
			t.Errorf("all is free, and the samples say %+v", u)
		}
	}
}

// No size is taken for the status of a watched block, whose low 16 bits some sizes have.
func TestSizesThatEndLikeTheStatusOfAWatchedBlock(t *testing.T) {
	const watched = 0xfffc
	eachWay(t, func(t *testing.T) {
		for _, size := range []int{watched, 1<<16 + watched} {
			h := newHeap(t, Options{})
			b := alloc(t, h, size)
			watch.SetSampleRate(0)
			if r, ok := h.Resize(b, size); ok {
				b = r
			}
			if n := live(h); n > 1 || n > 0 && watch.Zone() == 0 {
				t.Errorf("%d records of a block that is not sampled any more", n)
			}
			check(t, h)
			h.Free(b)
			check(t, h)
		}
	})
}

// Watching allocates nothing on the Go heap.
func TestWatchLeavesGoHeapAlone(t *testing.T) {
	if asan.Enabled {
		t.Skip("calls of the sanitizer allocate")
	}
	eachWay(t, func(t *testing.T) {
		h := newHeap(t, Options{Name: nameOf(t)})
		for _, size := range []int{64, 100000} {
			f := func() {
				b, _ := h.Alloc(size, 8, false)
				h.Free(b)
			}
			f()
			if n := testing.AllocsPerRun(1000, f); n != 0 {
				t.Errorf("size %d: %v allocations", size, n)
			}
		}
	})
}
