package heap

import (
	"fmt"
	"github.com/freehold-go/freehold/internal/pages"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// goPointers returns what GoPointers finds; a build that cannot tell skips the test.
func goPointers(t testing.TB, h *Heap) []GoPointer {
	t.Helper()
	if err := canTellGoPointers(); err != nil {
		t.Skip(err)
	}
	all, err := h.GoPointers()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// plant stores a word at an offset into b.
func plant(b []byte, offset int, word uintptr) { *(*uintptr)(unsafe.Pointer(&b[offset])) = word }

var aGoVariable = new([4]int)

func goAddr() uintptr { return uintptr(unsafe.Pointer(aGoVariable)) }

func TestGoPointersAreFound(t *testing.T) {
	sampleAt(t, 0)
	for _, size := range []int{int(pages.WordBytes), 24, 100, 1000, 32 << 10, 40000, wordsPart, 3*wordsPart + 100} {
		h := newHeap(t, Options{})
		var offsets []int
		for at := 0; at+int(pages.WordBytes) <= size; at += max(int(pages.WordBytes), size/5&^7) {
			offsets = append(offsets, at)
		}
		last := size&^int(pages.WordBytes-1) - int(pages.WordBytes)
		if offsets[len(offsets)-1] != last {
			offsets = append(offsets, last)
		}
		clean, b, freed := alloc(t, h, size), alloc(t, h, size), alloc(t, h, size)
		clear(clean)
		clear(b)
		for _, at := range offsets {
			plant(b, at, goAddr()+8)
			plant(freed, at, goAddr())
		}
		h.Free(freed)
		var want []GoPointer
		for _, at := range offsets {
			want = append(want, GoPointer{Block: addrOf(b), Size: size, Offset: at, Word: goAddr() + 8})
		}
		if got := goPointers(t, h); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("size %d: %+v, want %+v", size, got, want)
		}
	}
}

// What is no address of the Go heap, and what is beyond the requested size.
func TestOtherWordsAreNoGoPointers(t *testing.T) {
	h := newHeap(t, Options{})
	other := newHeap(t, Options{})
	for _, word := range []uintptr{
		0, 1, 4095, ^uintptr(0),
		0xdeaddead | 0xdeaddead<<((^uintptr(0)>>63)*32), // the runtime's mark of dead pointers
		uintptr(unsafe.Pointer(&aGoVariable)),           // a global
		addrOf(alloc(t, other, 64)),
		addrOf(alloc(t, h, 100000)),
	} {
		for _, size := range []int{64, 40000} {
			b := alloc(t, h, size)
			for i := 0; i < size; i += int(pages.WordBytes) {
				plant(b, i, word)
			}
		}
	}
	b := alloc(t, h, 90)
	clear(b[:cap(b)])
	plant(unsafe.Slice(&b[0], 96), 88, goAddr()) // byte 90 on is not the block's
	if got := goPointers(t, h); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	h.Close()
	if got := goPointers(t, h); len(got) != 0 {
		t.Errorf("after Close: %+v", got)
	}
}

func TestGoPointersOfSampledBlocksHaveStacks(t *testing.T) {
	sampleAt(t, 1)
	h := newHeap(t, Options{})
	for _, size := range []int{64, 40000} {
		plant(alloc(t, h, size), 8, goAddr())
	}
	got := goPointers(t, h)
	if len(got) != 2 || got[0].Size+got[1].Size != 40064 {
		t.Fatalf("%+v", got)
	}
	for _, p := range got {
		frames := runtime.CallersFrames(p.Stack)
		var names []string
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			names = append(names, f.Function)
		}
		if !slices.Contains(names, "github.com/freehold-go/freehold/internal/heap.TestGoPointersOfSampledBlocksHaveStacks") {
			t.Errorf("%d bytes: %q", p.Size, names)
		}
	}
}

// A large block is freed, or becomes another, between two of its parts.
func TestLargeBlockChangesBetweenParts(t *testing.T) {
	defer func() { onPart = nil }()
	for _, tt := range []struct {
		change func(h *Heap, b []byte)
		want   int
	}{
		{func(h *Heap, b []byte) {}, 2},
		{func(h *Heap, b []byte) { h.Free(b); h.pages.Purge(^uintptr(0)) }, 1},
		{func(h *Heap, b []byte) { h.Resize(b, wordsPart+8) }, 1},
		{func(h *Heap, b []byte) { h.Free(b); h.Alloc(50000, 8, true) }, 1},
	} {
		h := newHeap(t, Options{})
		b := alloc(t, h, 4*wordsPart)
		clear(b)
		plant(b, 0, goAddr())
		plant(b, 3*wordsPart, goAddr())
		var once sync.Once
		onPart = func() { once.Do(func() { tt.change(h, b) }) }
		if got := goPointers(t, h); len(got) != tt.want {
			t.Errorf("%+v, want %d", got, tt.want)
		}
	}
}

// A span is freed between the look at its run and the one at its blocks.
func TestSpanIsFreedUnderTheWalk(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 64)
	addr := addrOf(b) &^ (pages.PageBytes - 1)
	h.Free(b)
	h.Trim()
	h.central[classFor(64, 1)].visit(h, addr, func(p part) { t.Errorf("%+v", p) })
	for range 100 {
		alloc(t, h, 200) // another class has the pages
	}
	h.central[classFor(64, 1)].visit(h, addr, func(p part) { t.Errorf("%+v", p) })
}

// Others allocate, write, resize, free and trim meanwhile. The planted words are found each time.
func TestGoPointersWhileOthersUseTheHeap(t *testing.T) {
	h := newHeap(t, Options{Decay: time.Millisecond})
	small, big := alloc(t, h, 64), alloc(t, h, 2<<20)
	clear(small)
	clear(big)
	plant(small, 8, goAddr())
	plant(big, 1<<20, goAddr())
	var stop atomic.Bool
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			for i := g; !stop.Load(); i++ {
				b, err := h.Alloc(16+i*37%1000<<(i%10), 8, false)
				if err != nil {
					t.Error(err)
					return
				}
				fill(b, byte(i))
				if r, ok := h.Resize(b, len(b)*5/4); ok {
					b = r
				}
				h.Free(b)
				if i%1000 == 0 {
					h.Trim()
				}
			}
		})
	}
	defer wg.Wait()
	defer stop.Store(true)
	for range 30 {
		got := goPointers(t, h)
		for _, b := range [][]byte{small, big} {
			if !slices.ContainsFunc(got, func(p GoPointer) bool { return p.Block == addrOf(b) && p.Size == len(b) }) {
				t.Errorf("the word in the block of %d bytes is not found: %+v", len(b), got)
			}
		}
		for _, p := range got {
			if p.Word == goAddr() && p.Size != len(small) && p.Size != len(big) {
				t.Errorf("%+v", p)
			}
		}
	}
}

func TestGoPointersInGuardedBlocksAreFound(t *testing.T) {
	guardAt(t, 1, 0)
	h := newHeap(t, Options{})
	for _, size := range []int{24, 40000} {
		clean, b, freed := alloc(t, h, size), alloc(t, h, size), alloc(t, h, size)
		clear(clean)
		clear(b)
		plant(b, 16, goAddr())
		plant(freed, 16, goAddr())
		h.Free(freed)
		want := []GoPointer{{Block: addrOf(b), Size: size, Offset: 16, Word: goAddr()}}
		if got := goPointers(t, h); h.Stats().Guarded != 2 || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("size %d: %+v, want %+v", size, got, want)
		}
		h.Free(b)
		h.Free(clean)
	}
}
