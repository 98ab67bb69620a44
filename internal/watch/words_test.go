package watch_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/watch"
)

// goPointers returns what GoPointers finds; a build that cannot tell skips the test.
func goPointers(t testing.TB, h *Heap) []watch.GoPointer {
	t.Helper()
	if err := watch.CanTellGoPointers(); err != nil {
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

// The words of live blocks are found, with the stack where there is a record. Neither a red
// zone nor a block that is free or in quarantine is read.
func TestGoPointersAreFound(t *testing.T) {
	plainAndEachWay(t, func(t *testing.T) {
		goPointers(t, newHeap(t, Options{})) // skips where it cannot tell, before there is a late write
		for _, size := range []int{int(pages.WordBytes), 24, 100, 1000, 32 << 10, 40000, 256 << 10, 3*256<<10 + 100} {
			h := newHeap(t, Options{})
			var offsets []int
			for at := 0; at+int(pages.WordBytes) <= size; at += max(int(pages.WordBytes), size/5&^7) {
				offsets = append(offsets, at)
			}
			last := size&^int(pages.WordBytes-1) - int(pages.WordBytes)
			if offsets[len(offsets)-1] != last {
				offsets = append(offsets, last)
			}
			clean, b, freed := alloc(t, h, size), allocHere(h, size), alloc(t, h, size)
			clear(clean)
			clear(b)
			for _, at := range offsets {
				plant(b, at, goAddr()+8)
				plant(freed, at, goAddr())
			}
			h.Free(freed)
			zone := watch.Zone() > 0 && h.Stats().Guarded == 0
			if zone {
				plant(freed, 0, goAddr())
				plant(behind(b, watch.RedZone), 8, goAddr())
			}
			var found []watch.GoPointer
			for _, p := range goPointers(t, h) {
				if inStack := slices.Contains(functions(p.Stack), "github.com/freehold-go/freehold/internal/watch_test.allocHere"); inStack != (zone || watch.SampleRate() > 0) {
					t.Errorf("%d bytes: stack %q", p.Size, functions(p.Stack))
				}
				p.Stack = nil
				found = append(found, p)
			}
			var want []watch.GoPointer
			for _, at := range offsets {
				want = append(want, watch.GoPointer{Block: addrOf(b), Size: size, Offset: at, Word: goAddr() + 8})
			}
			if fmt.Sprint(found) != fmt.Sprint(want) {
				t.Errorf("size %d: %+v, want %+v", size, found, want)
			}
			if zone {
				fill(freed[:pages.WordBytes], watch.FillByte)
				fill(behind(b, watch.RedZone), watch.FillByte)
			}
			h.Free(b)
			h.Free(clean)
		}
	})
}

// plainAndEachWay is eachWay and a run in which no block is watched.
func plainAndEachWay(t *testing.T, test func(t *testing.T)) {
	t.Run("plain", test)
	eachWay(t, test)
}

// Words that are no addresses of the Go heap, and words beyond the requested size.
func TestOtherWordsAreNoGoPointers(t *testing.T) {
	plainAndEachWay(t, func(t *testing.T) {
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
		clear(b)
		if h.Stats().Guarded == 0 && watch.Zone() == 0 {
			plant(at(b, 0, 96), 88, goAddr()) // byte 90 on is not the block's
		}
		if got := goPointers(t, h); len(got) != 0 {
			t.Errorf("%+v", got)
		}
		check(t, h)
		h.Close()
		if got := goPointers(t, h); len(got) != 0 {
			t.Errorf("after Close: %+v", got)
		}
	})
}

// Others allocate, write, resize, free and trim meanwhile. The planted words are found each time.
func TestGoPointersWhileOthersUseTheHeap(t *testing.T) {
	plainAndEachWay(t, testGoPointersWhileOthersUseTheHeap)
}

func testGoPointersWhileOthersUseTheHeap(t *testing.T) {
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
	for range 10 {
		got := goPointers(t, h)
		for _, b := range [][]byte{small, big} {
			if !slices.ContainsFunc(got, func(p watch.GoPointer) bool { return p.Block == addrOf(b) && p.Size == len(b) }) {
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

// Where every block is watched, one that is not is on its way to or from its owner.
func TestBlocksOnTheirWayAreNotSearched(t *testing.T) {
	h := newHeap(t, Options{})
	for _, size := range []int{64, 40000} {
		plant(alloc(t, h, size), 8, goAddr())
	}
	keepFreed(t, 1<<20)
	if got := goPointers(t, h); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestGuardedBlocksStayWhileTheyAreVisited(t *testing.T) {
	guardAt(t, 1, 0)
	h := newHeap(t, Options{})
	b, visited := alloc(t, h, 64), 0
	h.Watch().EachGuarded(func(p watch.Part) {
		visited++
		if p.Block != addrOf(b) || p.Size != 64 || !h.Watch().HoldsGuards() {
			t.Errorf("%+v, and others may free it", p)
		}
	})
	if visited != 1 {
		t.Errorf("%d blocks", visited)
	}
}

func TestBlocksWithRedZonesStayWhileTheyAreVisited(t *testing.T) {
	keepFreed(t, 1<<20)
	h := newHeap(t, Options{})
	b, visited := alloc(t, h, 64), 0
	h.Watch().Visit(watch.Part{Block: addrOf(b), Size: 64 + watch.RedZone, To: 64 + watch.RedZone}, func(p watch.Part) {
		visited++
		if p.Size != 64 || p.To != 64 || !watch.HoldsRecords() {
			t.Errorf("%+v, and others may free it", p)
		}
	})
	if visited != 1 {
		t.Errorf("%d blocks", visited)
	}
}
