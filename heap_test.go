package freehold_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

func TestHeapConforms(t *testing.T) {
	alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
		h := freehold.NewHeap(nil)
		t.Cleanup(func() {
			if st := h.Stats(); st.LiveBytes != 0 {
				t.Errorf("left: %+v", st)
			}
			h.Close()
		})
		return h
	}, &alloctest.Options{Concurrent: true, Detects: alloctest.AllMistakes})
}

func TestPagesConform(t *testing.T) {
	alloctest.TestAllocator(t, func(*testing.T) freehold.Allocator { return freehold.Pages() },
		&alloctest.Options{Concurrent: true, Detects: alloctest.AllMistakes})
}

// The first use of a zero Heap panics and names the constructor.
func TestZeroHeapIsNamed(t *testing.T) {
	const ofHeap = ": zero value: NewHeap makes a Heap"
	other := freehold.NewHeap(nil)
	defer other.Close()
	small, large := freehold.Must(other.Alloc(100, 8)), freehold.Must(other.Alloc(100_000, 8))
	var h freehold.Heap
	for call, f := range map[string]func(){
		"Heap.Alloc":          func() { h.Alloc(100, 8) },
		"Heap.Zeroed":         func() { h.Zeroed(100_000, 8) },
		"Heap.Resize":         func() { h.Resize(small, 50) },
		"Heap.FreePointer":    func() { h.FreePointer(unsafe.Pointer(&small[0])) },
		"Heap.ReallocPointer": func() { h.ReallocPointer(unsafe.Pointer(&large[0]), 10) },
		"Heap.UsableSize":     func() { h.UsableSize(unsafe.Pointer(&large[0])) },
		"Heap.Stats":          func() { h.Live() },
		"Heap.Trim":           func() { h.Trim() },
		"Heap.Close":          func() { h.Close() },
	} {
		wantPanic(t, "freehold: "+call+ofHeap, f)
	}
	for _, b := range [][]byte{small, large, make([]byte, 10)} {
		wantPanic(t, "freehold: Heap.Free"+ofHeap, func() { h.Free(b) })
	}
	wantPanic(t, "freehold: Heap.Alloc"+ofHeap, func() { h.Malloc(10) })
	wantPanic(t, "freehold: Heap.Alloc"+ofHeap, func() { h.Alloc(100_000, 8) })
	other.Free(small)
	other.Free(large)
}

func TestSharedHeapsAreNotClosed(t *testing.T) {
	wantPanic(t, "freehold: Heap.Close: Default and Pages serve the whole process and are never closed", func() {
		freehold.Default().Close()
	})
	wantPanic(t, "freehold: Heap.Close: Default and Pages serve the whole process and are never closed", func() {
		freehold.Pages().Close()
	})
	b := freehold.Must(freehold.Default().Alloc(100, 8))
	freehold.Default().Free(b)
}

// A heap is logged as a line, not as its fields.
func TestHeapsAreLoggedByTheirFigures(t *testing.T) {
	limited := freehold.NewHeap(&freehold.HeapOptions{Name: "limited", MaxBytes: 64 << 20})
	defer limited.Close()
	unlimited := freehold.NewHeap(nil)
	defer unlimited.Close()
	freehold.Must(limited.Alloc(100<<10, 8))
	freehold.Must(unlimited.Alloc(100<<10, 8))
	closed := freehold.NewHeap(&freehold.HeapOptions{Name: "closed"})
	closed.Close()
	for _, c := range []struct {
		heap  *freehold.Heap
		limit string
	}{{limited, ", limit 67108864"}, {unlimited, ""}} {
		st := c.heap.Stats()
		want := fmt.Sprintf("heap %q: %d bytes live, %d resident%s", st.Name, st.LiveBytes, st.Resident, c.limit)
		for _, verb := range []string{"%v", "%+v", "%s"} {
			if got := fmt.Sprintf(verb, c.heap); got != want {
				t.Errorf("printed with %s: %s, want %s", verb, got, want)
			}
		}
	}
	if got := closed.String(); got != `heap "closed": closed` {
		t.Errorf("a closed heap is printed as %s", got)
	}
	var none *freehold.Heap
	if got := none.String(); got != "<nil>" {
		t.Errorf("no heap is printed as %s", got)
	}
	if got := fmt.Sprint(freehold.Pages()); !strings.HasPrefix(got, `heap "pages": `) {
		t.Errorf("Pages are printed as %.100s", got)
	}
}

// A nil Heap panics, and does not end the process by a fault.
func TestNilHeapPanics(t *testing.T) {
	var none *freehold.Heap
	for call, f := range map[string]func(){
		"Alloc":       func() { none.Alloc(64, 8) },
		"Alloc large": func() { none.Alloc(64<<10, 8) },
		"Zeroed":      func() { none.Zeroed(64, 8) },
		"Free":        func() { none.Free(make([]byte, 64)) },
		"Free large":  func() { none.Free(make([]byte, 64<<10)) },
		"FreePointer": func() { none.FreePointer(unsafe.Pointer(new(int))) },
		"Malloc":      func() { none.Malloc(64) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, "nil pointer") {
					t.Errorf("%s: panic %s", call, got)
				}
			}()
			f()
		}()
	}
}

// C programs rely on realloc's result being aligned for any type.
func TestReallocPointerAlignsAsMallocDoes(t *testing.T) {
	freehold.NeedsPlainBlocks(t)
	h := freehold.NewHeap(nil)
	defer h.Close()
	moved := 0
	for _, size := range []int{1, 8, 24, 40, 100} {
		for _, to := range []int{0, 1, size - 1, size, size + 1, 2 * size, 3000, 100000} {
			for range 4 { // every other block of 24 bytes is at a multiple of 16 anyway
				b := freehold.Must(h.Alloc(size, 1))
				for i := range b {
					b[i] = byte(i + 1)
				}
				before := uintptr(unsafe.Pointer(&b[0]))
				p := h.ReallocPointer(unsafe.Pointer(&b[0]), to)
				if uintptr(p)%16 != 0 {
					t.Fatalf("a block of %d bytes at %#x, made one of %d, is at %p", size, before, to, p)
				}
				if before%16 != 0 {
					moved++
				}
				for i, c := range unsafe.Slice((*byte)(p), min(size, to)) {
					if c != byte(i+1) {
						t.Fatalf("from %d bytes to %d: byte %d is %d", size, to, i, c)
					}
				}
				defer h.FreePointer(p)
			}
		}
	}
	if moved == 0 {
		t.Fatal("all blocks of Alloc were at multiples of 16")
	}
	p := h.Malloc(100)
	if q := h.ReallocPointer(p, 101); q != p {
		t.Error("a block that is aligned was moved without need")
	}
	h.FreePointer(p)
}

func ExampleHeap() {
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "blocks", MaxBytes: 64 << 20})
	defer heap.Close()

	b, err := heap.Alloc(1000, 8)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(b), cap(b), heap.Live())
	heap.Free(b)

	_, err = heap.Alloc(100<<20, 8)
	fmt.Println(errors.Is(err, freehold.ErrOutOfMemory))
	// Output:
	// 1000 1000 1
	// true
}

func ExampleHeap_Stats() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	for range 1000 {
		freehold.Must(heap.Alloc(100, 8))
	}
	st := heap.Stats()
	fmt.Println(st.Live, st.LiveBytes, st.Classes[0].BlockSize)
	// Output: 1000 112000 112
}

// After a burst, memory goes back at once, without the delay of HeapOptions.Decay.
func ExampleHeap_Trim() {
	heap := freehold.NewHeap(&freehold.HeapOptions{Decay: -1}) // gives nothing back by itself
	defer heap.Close()
	var blocks [][]byte
	for range 10_000 {
		blocks = append(blocks, freehold.Must(heap.Alloc(1000, 8)))
	}
	for _, b := range blocks {
		heap.Free(b)
	}
	before := heap.Stats().Committed
	heap.Trim()
	fmt.Println(before > 10_000_000, heap.Stats().Committed < 1<<20)
	// Output: true true
}

func ExampleHeap_Malloc() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	p := heap.Malloc(100)
	p = heap.ReallocPointer(p, 200)
	fmt.Println(heap.UsableSize(p) >= 200)
	heap.FreePointer(p)
	// Output: true
}

func ExampleDefault() {
	b := freehold.Must(freehold.Default().Zeroed(16, 8))
	defer freehold.Default().Free(b)
	fmt.Println(len(b), b[15])
	// Output: 16 0
}

func ExampleAdvise() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	table := freehold.Must(freehold.MakeSlice[float32](heap, 1<<20))
	defer freehold.FreeSlice(heap, table)
	if err := freehold.Advise(table, freehold.AdviceHugePages); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		fmt.Println(err) // the table works all the same
	}
	fmt.Println(len(table))
	// Output: 1048576
}

func ExamplePages() {
	b := freehold.Must(freehold.Pages().Alloc(1<<20, 8))
	b, ok := freehold.Pages().Resize(b, 512<<10)
	fmt.Println(len(b), ok)
	freehold.Pages().Free(b)
	// Output: 524288 true
}

// namesOf returns the names of the open heaps among some names.
func namesOf(among ...string) (names []string) {
	for _, st := range freehold.AllStats() {
		if slices.Contains(among, st.Name) {
			names = append(names, st.Name)
		}
	}
	return names
}

func TestAllStatsAreThoseOfTheOpenHeaps(t *testing.T) {
	freehold.Pages()
	first := freehold.NewHeap(&freehold.HeapOptions{Name: "all 1"})
	second := freehold.NewHeap(&freehold.HeapOptions{Name: "all 2"})
	b := freehold.Must(second.Alloc(100_000, 8))
	if got, want := namesOf("default", "all 1", "all 2"), []string{"default", "all 1", "all 2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if len(namesOf("pages")) != 1 {
		t.Error("Pages are not among them, or twice")
	}
	for _, st := range freehold.AllStats() {
		if st.Name == "all 2" && st.Live != 1 {
			t.Errorf("%d live blocks, want 1", st.Live)
		}
	}
	second.Free(b)
	first.Close()
	first.Close()
	if got, want := namesOf("all 1", "all 2"), []string{"all 2"}; !slices.Equal(got, want) {
		t.Errorf("after Close of one: %q, want %q", got, want)
	}
	second.Close()
	if got := namesOf("all 1", "all 2"); got != nil {
		t.Errorf("after Close of both: %q", got)
	}
}

func ExampleAllStats() {
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "index"})
	defer heap.Close()
	freehold.Must(heap.Alloc(100, 8))
	for _, st := range freehold.AllStats() {
		if st.Live > 0 && st.Name == "index" {
			fmt.Println(st.Name, st.Live, st.LiveBytes)
		}
	}
	// Output: index 1 112
}
