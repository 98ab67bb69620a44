package memory

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/test/suite"
	upstream "modernc.org/memory"
)

// allocator is the part of modernc.org/memory's interface that modernc.org/libc and others use.
type allocator interface {
	Calloc(int) ([]byte, error)
	Close() error
	Free([]byte) error
	Malloc(int) ([]byte, error)
	Realloc([]byte, int) ([]byte, error)
	Trim() error
	UintptrCalloc(int) (uintptr, error)
	UintptrFree(uintptr) error
	UintptrMalloc(int) (uintptr, error)
	UintptrRealloc(uintptr, int) (uintptr, error)
}

var _, _ allocator = (*Allocator)(nil), (*upstream.Allocator)(nil)

func Example() {
	var a Allocator // modernc.org/libc has one like this
	defer a.Close()
	b, err := a.Calloc(100)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(b), UsableSize(&b[0]) >= 100, a.Allocs)
	a.Free(b)
	fmt.Println(a.Allocs)
	// Output:
	// 100 true 1
	// 0
}

// Blocks keep their contents through Realloc, Calloc clears its blocks, and size 0 allocates no
// block.
func TestBlocks(t *testing.T) {
	var a Allocator
	defer a.Close()
	var b []byte
	for _, size := range []int{1, 100, 70, 5000, 1 << 20, 20 << 20, 30, 1, 0, 10} {
		kept := min(len(b), size)
		r, err := a.Realloc(b, size)
		if err != nil || len(r) != size || bytes.Count(r[:kept], []byte{7}) != kept {
			t.Fatalf("from %d to %d bytes: %d bytes, %v", len(b), size, len(r), err)
		}
		for i := range r[:cap(r)] {
			r[:cap(r)][i] = 7
		}
		b = r
	}
	if err := a.Free(b[:0]); err != nil || a.Allocs != 0 {
		t.Errorf("%d blocks are live: %v", a.Allocs, err)
	}
	if b, err := a.Calloc(1000); err != nil || bytes.Count(b, []byte{0}) != 1000 {
		t.Errorf("Calloc: %d bytes, %v", len(b), err)
	}
	for _, f := range []func(int) (uintptr, error){a.UintptrMalloc, a.UintptrCalloc} {
		if p, err := f(0); p != 0 || err != nil {
			t.Errorf("size 0: %#x, %v", p, err)
		}
	}
	if p, err := a.UnsafeCalloc(10); err != nil || UnsafeUsableSize(p) < 10 {
		t.Errorf("UnsafeCalloc: %d bytes, %v", UnsafeUsableSize(p), err)
	} else if p, err = a.UnsafeRealloc(p, 20); err != nil || a.UnsafeFree(p) != nil {
		t.Error(err)
	}
	for _, size := range []int{1, 100, 5000} {
		b, err := a.Malloc(size)
		if err != nil || cap(b) != UsableSize(&b[0]) || a.Free(b) != nil {
			t.Errorf("%d bytes have a capacity of %d, want the usable size; %v", size, cap(b), err)
		}
	}
	if p, err := a.UnsafeMalloc(0); p != nil || err != nil {
		t.Errorf("size 0: %v, %v", p, err)
	}
}

// Trim returns free memory at once, and Close clears the Allocator.
func TestTrimAndClose(t *testing.T) {
	var a Allocator
	b, err := a.Calloc(16 << 20)
	if err != nil || a.Free(b) != nil {
		t.Fatal(err)
	}
	before := a.heap.Stats().Resident
	if err := a.Trim(); err != nil || a.heap.Stats().Resident > before-8<<20 {
		t.Errorf("Trim left %d of %d bytes resident, %v", a.heap.Stats().Resident, before, err)
	}
	heap := a.heap
	if err := a.Close(); err != nil || a != (Allocator{}) {
		t.Errorf("Close left %+v, %v", a, err)
	}
	if _, listed := heaps.Load(heap); listed {
		t.Error("UsableSize still looks into the heap")
	}
}

// At the limit of Options calls fail and leave the block unchanged. So do sizes beyond an int.
func TestLimit(t *testing.T) {
	old := Options
	defer func() { Options = old }()
	Options.MaxBytes = 4 << 20
	var a Allocator
	defer a.Close()
	b, err := a.Malloc(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	b[1<<20-1] = 7
	for _, size := range []int{8 << 20, math.MaxInt, -1} {
		if _, err := a.Realloc(b, size); !errors.Is(err, freehold.ErrOutOfMemory) || b[1<<20-1] != 7 {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if _, err := a.Calloc(8 << 20); !errors.Is(err, freehold.ErrOutOfMemory) || a.Allocs != 1 {
		t.Errorf("Calloc: %v, %d blocks live", err, a.Allocs)
	}
}

// UintptrUsableSize finds the Allocator of a block. Close ends only its own Allocator's heap.
func TestTwoAllocators(t *testing.T) {
	var a, b Allocator
	defer b.Close()
	p, err := a.UintptrMalloc(40)
	q, err2 := b.UintptrMalloc(5000)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	x, y := UintptrUsableSize(p), UintptrUsableSize(q)
	if x < 40 || x > 64 || y < 5000 || y > 6000 {
		t.Errorf("usable sizes: %d and %d", x, y)
	}
	if err := errors.Join(a.Close(), a.Trim(), a.Close()); err != nil || a.Allocs != 0 {
		t.Errorf("%v, %d blocks live", err, a.Allocs)
	}
	if x, now := UintptrUsableSize(p), UintptrUsableSize(q); x != 0 || now != y {
		t.Errorf("usable sizes after Close: %d and %d", x, now)
	}
}

func TestMisuse(t *testing.T) {
	var a Allocator
	defer a.Close()
	p, err := a.UintptrMalloc(100)
	if err != nil || a.UintptrFree(p) != nil || a.UintptrFree(0) != nil {
		t.Fatal(err)
	}
	panics.Want(t, "freehold: Heap.FreePointer: ...", func() { a.UintptrFree(p) })
	panics.Want(t, "freehold: Heap.ReallocPointer: ...", func() { a.UintptrRealloc(p, 200) })
	panics.Want(t, "freehold: Heap.Malloc: size -1, want 0 or more", func() { a.Malloc(-1) })
}

// One of 10,000 blocks of 16 B to 64 KiB is replaced at a time. Small blocks are more frequent.
func BenchmarkReplace(b *testing.B) {
	for _, row := range []struct {
		name string
		a    allocator
	}{{"default", &upstream.Allocator{}}, {"freehold", &Allocator{}}} {
		b.Run("allocator="+row.name, func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			blocks := make([]uintptr, 10_000)
			end := suite.Footprint(b)
			for b.Loop() {
				p := &blocks[random.IntN(len(blocks))]
				row.a.UintptrFree(*p)
				size := 16 << random.IntN(13)
				*p, _ = row.a.UintptrCalloc(size + random.IntN(size))
			}
			end()
			row.a.Close()
		})
	}
}
