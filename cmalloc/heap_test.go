package cmalloc_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/cmalloc"
	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/test/child"
)

// newHeap returns a Heap. The test fails if a block of it is live at its end.
func newHeap(t testing.TB) *cmalloc.Heap {
	t.Helper()
	h, err := cmalloc.New()
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if n := h.Live(); n != 0 {
			t.Errorf("%d blocks are live in the end", n)
		}
	})
	return h
}

func TestConforms(t *testing.T) {
	name, version := cmalloc.Implementation()
	t.Logf("on %s %s", name, version)
	alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator { return newHeap(t) },
		&alloctest.Options{Concurrent: true, MaxSize: 9 << 20, MaxAlign: 4 << 20})
}

func FuzzHeap(f *testing.F) {
	f.Add([]byte{0, 0, 8, 0, 4, 0, 8, 1, 8, 0, 0, 1, 13, 0, 0, 0})
	f.Fuzz(func(t *testing.T, prog []byte) { alloctest.RunProgram(t, newHeap(t), prog) })
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	h, err := cmalloc.New()
	name, version := cmalloc.Implementation()
	if err == nil {
		if h == nil || name == "" {
			t.Errorf("New returned %v, on %q %q", h, name, version)
		}
		return
	}
	if h != nil || !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "CGO_ENABLED=1") {
		t.Errorf("New returned %v and %q", h, err)
	}
	if name != "" || version != "" {
		t.Errorf("the implementation that there is not is %q %q", name, version)
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	h := newHeap(t)
	b := freehold.Must(h.Alloc(8, 8))
	defer h.Free(b)
	for want, call := range map[string]func(){
		"freehold: cmalloc.Heap.Alloc: size -1, want 0 or more":           func() { h.Alloc(-1, 8) },
		"freehold: cmalloc.Heap.Alloc: alignment 3, want a power of two":  func() { h.Alloc(8, 3) },
		"freehold: cmalloc.Heap.Zeroed: size -1, want 0 or more":          func() { h.Zeroed(-1, 8) },
		"freehold: cmalloc.Heap.Zeroed: alignment 0, want a power of two": func() { h.Zeroed(0, 0) },
		"freehold: cmalloc.Heap.Resize: size -1, want 0 or more":          func() { h.Resize(b, -1) },
	} {
		panics.Want(t, want, call)
	}
}

func TestIsNoOwner(t *testing.T) {
	if _, ok := freehold.Allocator(new(cmalloc.Heap)).(freehold.Owner); ok {
		t.Error("a Heap says that it knows its blocks, which C does not")
	}
}

func TestLive(t *testing.T) {
	h := newHeap(t)
	var blocks [][]byte
	for i := range 3 {
		blocks = append(blocks, freehold.Must(h.Alloc(100+i, 8)))
	}
	freehold.Must(h.Alloc(0, 8)) // does not count
	if n := h.Live(); n != 3 {
		t.Errorf("%d blocks are live, want 3", n)
	}
	if r, ok := h.Resize(blocks[0], 0); !ok || len(r) != 0 {
		t.Error("Resize to 0 failed")
	}
	h.Free(blocks[1])
	h.Free(blocks[2])
	if n := h.Live(); n != 0 {
		t.Errorf("%d blocks are live, want none", n)
	}
}

// Each Zeroed takes memory that was dirtied under another alignment.
func TestAlignedAndZeroed(t *testing.T) {
	h := newHeap(t)
	for _, size := range []int{1, 8, 24, 100, 5000, 200_000, 3 << 20} {
		for align := 1; align <= 1<<16; align *= 2 {
			dirty := freehold.Must(h.Alloc(size, align))
			for i := range dirty {
				dirty[i] = 0xFF
			}
			h.Free(dirty)
			b := freehold.Must(h.Zeroed(size, align))
			if uintptr(unsafe.Pointer(&b[0]))%uintptr(align) != 0 {
				t.Fatalf("Zeroed(%d, %d) is at %p", size, align, b)
			}
			for i := range b {
				if b[i] != 0 {
					t.Fatalf("Zeroed(%d, %d): byte %d is %d", size, align, i, b[i])
				}
			}
			h.Free(b)
		}
	}
}

// The alignment of a block is none of the length's business when it is freed.
func TestSmallBlocksOfLargeAlignment(t *testing.T) {
	h := newHeap(t)
	for range 100 {
		var blocks [][]byte
		for i := range 64 {
			b := freehold.Must(h.Alloc(100, 4096))
			for j := range b {
				b[j] = byte(i)
			}
			blocks = append(blocks, b)
			if r, ok := h.Resize(b, 100-i%40); ok {
				blocks[i] = r
			}
		}
		for i, b := range blocks {
			for j := range b {
				if b[j] != byte(i) {
					t.Fatalf("byte %d of block %d is %d", j, i, b[j])
				}
			}
			h.Free(b)
		}
		other := freehold.Must(h.Zeroed(112, 8)) // of the class that the length is in
		h.Free(other)
	}
}

func TestResizeLeavesNoHalfEmptyBlock(t *testing.T) {
	h := newHeap(t)
	b := freehold.Must(h.Alloc(1000, 8))
	for _, size := range []int{100, 400} {
		if _, ok := h.Resize(b, size); ok {
			t.Errorf("a block of 1000 bytes was left in place for %d", size)
		}
	}
	r, ok := h.Resize(b, 1000)
	if !ok || len(r) != 1000 || &r[0] != &b[0] {
		t.Errorf("Resize to the same size: %t", ok)
	}
	h.Free(r)
}

func TestStatsMove(t *testing.T) {
	h := newHeap(t)
	// Freed blocks that wait in the thread's cache count as allocated, and serving
	// a large block may flush them.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var cached [][]byte
	for size := 512; size <= 8<<10; size += 512 {
		for range 20 {
			cached = append(cached, freehold.Must(h.Alloc(size, 8)))
		}
	}
	for _, b := range cached {
		h.Free(b)
	}

	const size = 64 << 20
	before := h.Stats()
	b := freehold.Must(h.Zeroed(size, 8))
	for i := 0; i < size; i += 4096 {
		b[i] = 1
	}
	live := h.Stats()
	h.Free(b)
	h.Trim()
	after := h.Stats()
	t.Logf("%+v\n%+v\n%+v", before, live, after)

	name, _ := cmalloc.Implementation()
	figures := []struct {
		name                string
		before, live, after int
		on                  string // the mallocs that must have it
	}{
		{"allocated", before.Allocated, live.Allocated, after.Allocated, "jemalloc glibc"},
		{"active", before.Active, live.Active, after.Active, "jemalloc"},
		{"resident", before.Resident, live.Resident, after.Resident, "jemalloc"},
		{"mapped", before.Mapped, live.Mapped, after.Mapped, "jemalloc"}, // glibc may have room mapped
	}
	for _, f := range figures {
		if !slices.Contains(strings.Fields(f.on), name) {
			continue
		}
		if f.before < 0 || f.live < f.before+size/2 || f.after > f.live-size/2 {
			t.Errorf("%s is %d, %d with a block of %d bytes, and %d after it", f.name, f.before, f.live, size, f.after)
		}
	}
	if name == "glibc" && live.Mapped < size {
		t.Errorf("mapped is %d with a block of %d bytes", live.Mapped, size)
	}
	if name == "jemalloc" && (live.Metadata <= 0 || live.Retained < 0) {
		t.Errorf("metadata %d, retained %d", live.Metadata, live.Retained)
	}
}

func TestStatsAllocateNothing(t *testing.T) {
	h := newHeap(t)
	h.Stats()
	const rounds = 2000
	if n := testing.AllocsPerRun(rounds, func() { h.Stats() }); n != 0 {
		t.Errorf("Stats allocates %v times on the Go heap", n)
	}
	// A malloc takes tens of kilobytes for each thread that begins, which Go may do
	// at any time: what Stats took itself is in every attempt.
	least := math.MaxInt
	for range 50 {
		before := h.Stats().Allocated
		for range rounds {
			h.Stats()
		}
		if least = min(least, h.Stats().Allocated-before); least <= 0 {
			return
		}
	}
	t.Errorf("%d calls of Stats took %d bytes of C's heap", rounds, least)
}

func TestAllocAndFreeAllocateNoGoMemory(t *testing.T) {
	h := newHeap(t)
	if name, _ := cmalloc.Implementation(); strings.HasPrefix(name, "libasan") {
		t.Skip("cgo's arguments escape in builds with -asan")
	}
	if n := testing.AllocsPerRun(1000, func() {
		b, _ := h.Alloc(100, 8)
		b, _ = h.Resize(b, 101)
		h.Free(b)
	}); n != 0 {
		t.Errorf("a pair allocates %v times on the Go heap", n)
	}
}

func TestLiveUnderConcurrency(t *testing.T) {
	h := newHeap(t)
	var wg sync.WaitGroup
	blocks := make(chan []byte, 16)
	for range 4 {
		wg.Go(func() {
			for i := range 2000 {
				blocks <- freehold.Must(h.Alloc(1+i%500, 8))
			}
		})
	}
	go func() { wg.Wait(); close(blocks) }()
	var kept [][]byte
	for i := 0; ; i++ {
		b, ok := <-blocks
		if !ok {
			break
		}
		if i%8 == 0 {
			kept = append(kept, b)
		} else {
			h.Free(b)
		}
	}
	if n := h.Live(); n != 1000 {
		t.Errorf("%d blocks are live, want 1000", n)
	}
	for _, b := range kept {
		h.Free(b)
	}
}

func TestOutOfMemory(t *testing.T) {
	if asan.Enabled {
		t.Skip("the sanitizer's addresses exceed any limit, and its malloc ends the program")
	}
	newHeap(t)
	if child.Is(t) {
		runOut(t)
		return
	}
	if !canLimit {
		t.Skip("the address space cannot be limited here")
	}
	out, errs, err := child.Run(t)
	if err != nil || !strings.Contains(out+errs, "ran out") {
		t.Errorf("the child: %v\n%s%s", err, out, errs)
	}
}

// runOut takes memory until there is none, and sees that the heap still works.
//
// How much address space is left is known only roughly: the Go runtime and the
// C library map and unmap while the test runs. The room is one block and a half,
// so the first block is served, and a refusal leaves enough for the runtime, if
// the runtime's needs change by less than half a block.
func runOut(t *testing.T) {
	const size, room = 512 << 20, 768 << 20
	runtime.LockOSThread() // glibc gives each thread that calls malloc 64 MiB of address space
	limit, err := limitAddressSpace(room)
	if err != nil {
		t.Fatal(err)
	}
	h := newHeap(t)
	for _, call := range []func(size, align int) ([]byte, error){h.Alloc, h.Zeroed} {
		for _, align := range []int{8, 4096} {
			blocks := takeAll(t, call, size, align, limit)
			if len(blocks) == 0 || h.Live() != len(blocks) {
				t.Errorf("%d blocks, and Live is %d", len(blocks), h.Live())
			}
			for i, b := range blocks {
				if b[0] != 1 || b[size-1] != byte(i) {
					t.Errorf("block %d has changed", i)
				}
				if _, ok := h.Resize(b, math.MaxInt/2); ok {
					t.Error("a block grew beyond all memory")
				}
				h.Free(b)
			}
		}
	}
	t.Log("ran out")
}

// takeAll takes blocks until there are no more, which must be before they fill
// the address space of limit bytes, and numbers them.
func takeAll(t *testing.T, call func(size, align int) ([]byte, error), size, align int, limit uint64) (blocks [][]byte) {
	for {
		b, err := call(size, align)
		if err != nil {
			if b != nil || !errors.Is(err, freehold.ErrOutOfMemory) || !strings.Contains(err.Error(), fmt.Sprint(size)) {
				t.Errorf("the last block is %d bytes, with error %v", len(b), err)
			}
			return blocks
		}
		b[0], b[size-1] = 1, byte(len(blocks))
		blocks = append(blocks, b)
		if uint64(len(blocks))*uint64(size) > limit {
			t.Fatalf("%d blocks of %d bytes in an address space of %d", len(blocks), size, limit)
		}
	}
}
