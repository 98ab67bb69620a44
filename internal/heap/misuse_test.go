// Misuse: the panics for slices that are not live blocks, and their cost.

package heap

import (
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/vm"
)

// Every misuse is named at the guilty call, and nothing else is damaged.
func TestMisuseIsNamed(t *testing.T) {
	EachRate(t, testMisuseIsNamed)
	t.Run("zones", func(t *testing.T) {
		CheckBlocks(t, 1<<20)
		testMisuseIsNamed(t)
	})
}

func testMisuseIsNamed(t *testing.T) {
	other := newHeap(t, Options{Name: "other"})
	tests := []struct {
		name string
		call func(h *Heap, small, large []byte)
		want string
	}{
		{"negative size", func(h *Heap, _, _ []byte) { h.Alloc(-1, 8, false) }, "Heap.Alloc: size -1, want 0 or more"},
		{"negative size, zeroed", func(h *Heap, _, _ []byte) { h.Alloc(-1, 8, true) }, "Heap.Zeroed: size -1"},
		{"negative limit", func(*Heap, []byte, []byte) { makeHeap(Options{MaxBytes: -1}) }, "NewHeap: MaxBytes -1, want 0 or more"},
		{"no power of two", func(h *Heap, _, _ []byte) { h.Alloc(8, 3, false) }, "Heap.Alloc: alignment 3, want a power of two"},
		{"alignment 0", func(h *Heap, _, _ []byte) { h.Alloc(8, 0, false) }, "alignment 0, want a power of two"},
		{"negative alignment", func(h *Heap, _, _ []byte) { h.Alloc(8, -8, false) }, "alignment -8, want a power of two"},
		{"alignment 0 of nothing", func(h *Heap, _, _ []byte) { h.Alloc(0, 0, false) }, "alignment 0"},
		{"double free", func(h *Heap, small, _ []byte) { h.Free(small); h.Free(small) }, "double free"},
		{"double free of a large block", func(h *Heap, _, large []byte) { h.Free(large); h.Free(large) }, "double free"},
		{"double free after Trim", func(h *Heap, small, _ []byte) { h.Free(small); h.Trim(); h.Free(small) }, "double free"},
		{"double free of a large block, by a pointer", func(h *Heap, _, large []byte) { h.Free(large); h.FreePointer(unsafe.Pointer(&large[0])) }, "double free"},
		{"double free from the middle of a large block", func(h *Heap, _, large []byte) { h.Free(large); h.Free(large[8192:]) }, "Heap.Free: 0x"},
		{"Go memory", func(h *Heap, _, _ []byte) { h.Free(make([]byte, 100)) }, "not from a freehold heap"},
		{"empty slice of Go memory", func(h *Heap, _, _ []byte) { h.Free(make([]byte, 0, 100)) }, "not from a freehold heap"},
		{"another heap's block", func(h *Heap, _, _ []byte) { h.Free(alloc(t, other, 100)) }, `belongs to another heap, "other"`},
		{"another heap's large block", func(h *Heap, _, _ []byte) { h.Free(alloc(t, other, 100000)) }, `belongs to another heap, "other"`},
		{"another heap's freed large block", func(h *Heap, _, _ []byte) { b := alloc(t, other, 100000); other.Free(b); h.Free(b) }, `another heap, "other"`},
		{"interior", func(h *Heap, small, _ []byte) { h.Free(small[1:]) }, "points 1 byte into a block of 100 bytes"},
		{"interior, aligned", func(h *Heap, small, _ []byte) { h.Free(small[96:]) }, "points 96 bytes into a block of 100 bytes"},
		{"interior of a large block", func(h *Heap, _, large []byte) { h.Free(large[pages.PageBytes*3:]) }, "points 24576 bytes into a block of 100000 bytes"},
		{"cut slice", func(h *Heap, small, _ []byte) { h.Free(small[:99]) }, "has 99 bytes, the block 100"},
		{"emptied slice", func(h *Heap, small, _ []byte) { h.Free(small[:0]) }, "has 0 bytes, the block 100"},
		{"clipped slice", func(h *Heap, small, _ []byte) { h.Free(small[:99:99]) }, "has 99 bytes, the block 100"},
		{"emptied and clipped slice", func(h *Heap, small, _ []byte) { h.Free(small[:0:0]) }, "has 0 bytes, the block 100"},
		{"emptied slice of a large block", func(h *Heap, _, large []byte) { h.Free(unsafe.Slice(&large[0], 0)) }, "has 0 bytes, the block 100000"},
		{"empty slice inside a large block", func(h *Heap, _, large []byte) { h.Free(unsafe.Slice(&large[50000], 0)) }, "points 50000 bytes into a block"},
		{"cut slice of a large block", func(h *Heap, _, large []byte) { h.Free(large[:40000]) }, "has 40000 bytes, the block 100000"},
		{"Resize to a negative size", func(h *Heap, small, _ []byte) { h.Resize(small, -1) }, "Heap.Resize: size -1, want 0 or more"},
		{"Resize after free", func(h *Heap, small, _ []byte) { h.Free(small); h.Resize(small, 10) }, "Heap.Resize: 0x"},
		{"Resize after free of a large block", func(h *Heap, _, large []byte) { h.Free(large); h.Resize(large, 110000) }, "double free"},
		{"Resize of Go memory", func(h *Heap, _, _ []byte) { h.Resize(make([]byte, 10), 11) }, "not from a freehold heap"},
		{"Resize of a part", func(h *Heap, _, large []byte) { h.Resize(large[:99999], 11) }, "has 99999 bytes, the block 100000"},
		{"FreePointer twice", func(h *Heap, small, _ []byte) { h.Free(small); h.FreePointer(unsafe.Pointer(&small[0])) }, "Heap.FreePointer: 0x"},
		{"FreePointer inside", func(h *Heap, small, _ []byte) { h.FreePointer(unsafe.Pointer(&small[8])) }, "points 8 bytes into"},
		{"FreePointer inside a large block", func(h *Heap, _, large []byte) { h.FreePointer(unsafe.Pointer(&large[8])) }, "points 8 bytes into"},
		{"ReallocPointer of Go memory", func(h *Heap, _, _ []byte) { h.ReallocPointer(unsafe.Pointer(new(int)), 5) }, "not from a freehold heap"},
		{"UsableSize of Go memory", func(h *Heap, _, _ []byte) { h.UsableSize(unsafe.Pointer(new(int))) }, "not from a freehold heap"},
		{"negative Malloc", func(h *Heap, _, _ []byte) { h.Malloc(-1) }, "Heap.Malloc: size -1, want 0 or more"},
		{"negative Calloc", func(h *Heap, _, _ []byte) { h.Calloc(-1, 5) }, "Heap.Calloc: n -1, want 0 or more"},
		{"Calloc of a negative size", func(h *Heap, _, _ []byte) { h.Calloc(5, -1) }, "Heap.Calloc: size -1, want 0 or more"},
		{"negative ReallocPointer", func(h *Heap, small, _ []byte) { h.ReallocPointer(unsafe.Pointer(&small[0]), -1) }, "Heap.ReallocPointer: size -1, want 0 or more"},
		{"negative ReallocPointer of nil", func(h *Heap, _, _ []byte) { h.ReallocPointer(nil, -1) }, "Heap.ReallocPointer: size -1, want 0 or more"},
		{"Alloc after Close", func(h *Heap, _, _ []byte) { h.Close(); h.Alloc(10, 1, false) }, `Heap.Alloc: heap "guilty" is closed`},
		{"large Alloc after Close", func(h *Heap, _, _ []byte) { h.Close(); h.Alloc(100000, 1, false) }, "is closed"},
		{"Free after Close", func(h *Heap, small, _ []byte) { h.Close(); h.Free(small) }, `Heap.Free: heap "guilty" is closed`},
		{"large Free after Close", func(h *Heap, _, large []byte) { h.Close(); h.Free(large) }, "is closed"},
		{"Resize after Close", func(h *Heap, small, _ []byte) { h.Close(); h.Resize(small, 5) }, `Heap.Resize: heap "guilty" is closed`},
		{"Trim after Close", func(h *Heap, _, _ []byte) { h.Close(); h.Trim() }, `Heap.Trim: heap "guilty" is closed`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHeap(t, Options{Name: "guilty"})
			bystander := alloc(t, h, 100)
			for i := range bystander {
				bystander[i] = byte(i)
			}
			small, large := alloc(t, h, 100), alloc(t, h, 100000)
			got := panicOf(func() { tt.call(h, small, large) })
			if !strings.HasPrefix(got, "freehold: ") || !strings.Contains(got, tt.want) {
				t.Fatalf("panic %q, want one with %q", got, tt.want)
			}
			if h.pages.Closed.Load() {
				return
			}
			for i := range bystander {
				if bystander[i] != byte(i) {
					t.Fatalf("a bystander's byte %d changed", i)
				}
			}
			h.Free(bystander)
			h.check(t)
		})
	}
	if st := other.Stats(); st.Blocks != 2 {
		t.Errorf("the other heap has %d blocks, want its 2", st.Blocks)
	}
}

// Frees of one block by many goroutines: exactly one succeeds.
func TestRacingFreesOfLargeBlock(t *testing.T) {
	if vm.GoBacked {
		t.Skip("where the race detector sees the memory it rightly reports this")
	}
	h := newHeap(t, Options{})
	for range 100 {
		b := alloc(t, h, 100000)
		var wg sync.WaitGroup
		var mu sync.Mutex
		freed := 0
		for range 4 {
			wg.Go(func() {
				if panicOf(func() { h.Free(b) }) == "" {
					mu.Lock()
					freed++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if freed != 1 {
			t.Fatalf("%d goroutines freed the block", freed)
		}
	}
}

// The status of a free block is a number too. No slice has that length.
func TestSliceAsLongAsTheStateOfAFreeBlockIsNoBlock(t *testing.T) {
	eachPath(t, func(t *testing.T, f *functions) {
		h := newHeap(t, Options{})
		b := alloc(t, h, 100)
		h.Free(b)
		for _, n := range []int{small.FreeZero, small.FreeDirty, small.FreeDirty + 1, small.FreeDirty + 1 + 100} {
			if got := panicOf(func() { f.free(h, unsafe.Slice(&b[0], n)) }); got == "" {
				t.Errorf("a slice of %d bytes was taken", n)
			}
		}
	})
}

// A run whose memory is being given back is in no table.
func TestFreeOfWhatIsBeingGivenBackIsNamed(t *testing.T) {
	h := newHeap(t, Options{WholePages: true})
	before, stale := alloc(t, h, 40000), alloc(t, h, 40000)
	if small.AddrOf(stale) != small.SpanAt(small.AddrOf(before)).End() {
		t.Fatal("the blocks are no neighbours")
	}
	got := ""
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpDecommit && got == "" {
			got = h.diagnose("Free", stale)
		}
		return nil
	})
	h.Free(stale)
	restore()
	if want := "no block begins there; it was freed before (double free), or never allocated"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// There may be more heaps than numbers for page page words. Heaps without a number work too, and
// detect the blocks of other heaps.
func TestManyHeaps(t *testing.T) {
	var heaps []*Heap
	for range 1<<8 + 10 {
		heaps = append(heaps, newHeap(t, Options{}))
	}
	for i, h := range heaps {
		a, b := alloc(t, h, 64), alloc(t, h, 64)
		fill(a, byte(i))
		h.Free(b)
		if got := panicOf(func() { heaps[(i+1)%len(heaps)].Free(a) }); !strings.Contains(got, "another heap") {
			t.Fatalf("heap %d: panic %q", i, got)
		}
		if got := panicOf(func() { h.Free(b) }); !strings.Contains(got, "freed before") {
			t.Fatalf("heap %d: panic %q", i, got)
		}
		if !allSet(a, byte(i)) {
			t.Fatalf("heap %d: a block changed", i)
		}
		h.Free(a)
	}
}
