//go:build !race

package pages

import (
	"math/bits"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// Clearing memory that was never used would make it resident.
func TestZeroedLargeBlockClearsOnlyWhatWasUsed(t *testing.T) {
	for _, size := range []int{128 << 10, 1 << 20} { // below minAskBytes, all that was used is cleared
		h := newHeap(t, Options{})
		used := alloc(t, h, size)
		fill(used, 1)
		h.Free(used)
		b := zeroed(t, h, 3*size)
		if addrOf(b) != addrOf(used) {
			t.Fatal("the block does not begin with used memory")
		}
		if got := residentBytes(t, b); got > size {
			t.Errorf("%d bytes are resident, and %d were used", got, size)
		}
		if !allSet(b, 0) {
			t.Error("not zero")
		}
	}
}

// residentBytes returns how much of b, a large block, is in memory.
func residentBytes(t *testing.T, b []byte) (n int) {
	t.Helper()
	os := vm.PageBytes()
	pages := make([]byte, vm.RoundUp(uintptr(len(b)), os)/os)
	if err := vm.Resident(uintptr(unsafe.Pointer(&b[0])), uintptr(len(pages))*os, pages); err != nil {
		t.Skip(err)
	}
	for _, p := range pages {
		n += int(p&1) * int(os)
	}
	return n
}

func zeroed(t *testing.T, h *testHeap, size int) []byte {
	t.Helper()
	b, err := h.Alloc(size, 8, true)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A block that is used again and again takes the memory that its user touches,
// as it does the first time.
func TestZeroedBlockHasMemoryForWhatIsTouchedOnly(t *testing.T) {
	sizes := []int{1 << 20, 64 << 20, 256 << 20}
	if bits.UintSize == 64 {
		sizes = append(sizes, 2<<(bits.UintSize/2-2)) // 2 GiB
	}
	for _, size := range sizes {
		h := newHeap(t, Options{})
		for round := range 3 {
			b := zeroed(t, h, size)
			if b[size/2] != 0 {
				t.Fatalf("%d MiB, round %d: not zero", size>>20, round)
			}
			b[size/2] = 1
			if got := residentBytes(t, b[:min(size, 256<<20)]); got > vm.HugePageBytes {
				t.Errorf("%d MiB, round %d: %d bytes are resident", size>>20, round, got)
			}
			h.Free(b)
		}
		h.Close()
	}
}

// A block that is touched whole keeps its memory: to bring it back costs eight
// times what clearing does.
func TestZeroedBlockKeepsTheMemoryOfItsRun(t *testing.T) {
	for size := 1 << 20; size <= 64<<20; size *= 4 {
		h := newHeap(t, Options{})
		b := zeroed(t, h, size)
		fill(b, 1)
		h.Free(b)
		b = zeroed(t, h, size)
		if got := residentBytes(t, b); got < size {
			t.Errorf("%d MiB: %d bytes are resident", size>>20, got)
		}
		if !allSet(b, 0) {
			t.Errorf("%d MiB: not zero", size>>20)
		}
		h.Close()
	}
}

// Whichever pages were touched, the block is zero and they are all that is in
// memory.
func TestZeroedBlockOverPagesTouchedAtRandom(t *testing.T) {
	const size = 40<<20 + 3*PageBytes // more than one question, and no whole number of them
	random := rand.New(rand.NewPCG(1, 19))
	h := newHeap(t, Options{})
	alloc(t, h, 40000) // the blocks begin in the middle of things
	for round := range 20 {
		b := zeroed(t, h, size)
		if round%2 == 1 {
			before := residentBytes(t, b)
			if !allSet(b, 0) {
				t.Fatalf("round %d: not zero", round)
			}
			if before > size/2 {
				t.Errorf("round %d: %d of %d bytes are resident", round, before, size)
			}
			h.Free(b)
			h.Trim()
			continue
		}
		for range 200 {
			at := random.IntN(size - 1)
			n := min(1<<random.IntN(17), size-at)
			fill(b[at:at+n], 0xA5)
		}
		h.Free(b)
	}
}
