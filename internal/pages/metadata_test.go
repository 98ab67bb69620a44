// Metadata: slabs and their objects.

package pages

import (
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

func TestMetadataIsZero(t *testing.T) {
	const size = 128
	h := newHeap(t, Options{})
	h.pages.mu.Lock()
	defer h.pages.mu.Unlock()
	for range 3 {
		addr, err := h.pages.newObject(size)
		if err != nil {
			t.Fatal(err)
		}
		b := unsafe.Slice((*byte)(vm.Pointer(addr)), size)
		if !allSet(b, 0) {
			t.Error("an object that was freed and taken again is not zero")
		}
		fill(b, 1)
		h.pages.dropObject(addr, size)
	}
}

func TestEmptySlabsAreGivenBack(t *testing.T) {
	h := newHeap(t, Options{WholePages: true})
	var live [][]byte
	for range 2000 {
		live = append(live, alloc(t, h, PageBytes))
	}
	full := h.pages.metadata.bytes
	for _, b := range live {
		h.Free(b)
	}
	if h.pages.metadata.bytes > 2*SlabBytes || full < 8*SlabBytes {
		t.Errorf("2000 spans took %d bytes in slabs, and %d when they were freed", full, h.pages.metadata.bytes)
	}
}

// The addresses of a freed slab are reused.
func TestAddressesOfAnEmptySlabServeAgain(t *testing.T) {
	h := newHeap(t, Options{})
	h.pages.mu.Lock()
	defer h.pages.mu.Unlock()
	for range 2 * metadataSegmentBytes / SlabBytes {
		var objects [2 * SlabBytes / MaxObject]uintptr // more than fit in a slab
		for i := range objects {
			addr, err := h.pages.newObject(MaxObject)
			if err != nil {
				t.Fatal(err)
			}
			objects[i] = addr
		}
		for _, addr := range objects {
			h.pages.dropObject(addr, MaxObject)
		}
	}
	if n := len(h.pages.metadata.segments); n != 1 {
		t.Errorf("%d segments for two slabs at a time", n)
	}
}

// Alternating allocs and frees at the edge of a slab make no system calls.
func TestPairsAtTheEdgeOfASlabMakeNoSystemCalls(t *testing.T) {
	h := newHeap(t, Options{})
	calls := 0
	defer vm.SetFault(func(vm.Op) error { calls++; return nil })()
	for i := range 300 {
		alloc(t, h, 40000)
		h.Free(alloc(t, h, 40000))
		calls = 0
		for range 100 {
			h.Free(alloc(t, h, 40000))
		}
		if calls > 0 {
			t.Fatalf("%d blocks live: %d system calls in 100 pairs", i, calls)
		}
	}
}

func TestSlabThatCannotBeReturnedCountsOnce(t *testing.T) {
	h := newHeap(t, Options{})
	alloc(t, h, 10)
	defer refuse(vm.OpDecommit)()
	before := h.pages.metadata.bytes
	h.pages.mu.Lock()
	defer h.pages.mu.Unlock()
	for range 100 {
		var objects [12]uintptr // more than fit in a slab
		for i := range objects {
			objects[i], _ = h.pages.newObject(3000)
		}
		for _, addr := range objects {
			h.pages.dropObject(addr, 3000)
		}
	}
	if h.pages.metadata.bytes-before > 3*SlabBytes {
		t.Errorf("%d bytes for three slabs", h.pages.metadata.bytes-before)
	}
}

// Trim frees the empty slabs that are otherwise kept.
func TestTrimLeavesNoEmptySlab(t *testing.T) {
	h := newHeap(t, Options{})
	for size := 8; size <= (32 << 10); size *= 2 {
		h.Free(alloc(t, h, size))
	}
	h.Trim()
	for _, at := range h.pages.metadata.room {
		for ; at != 0; at = slabAt(at).next {
			if s := slabAt(at); s.live == 0 {
				t.Errorf("a slab for objects of %d bytes is empty", s.Size)
			}
		}
	}
}

// Slabs that become empty while slabs are kept serve the next objects. FreeEmptySlabs frees them
// afterwards, and so does the next tick.
func TestKeepSlabs(t *testing.T) {
	h := newHeap(t, Options{Decay: never})
	fill := func() (all []uintptr) {
		for range 4 * SlabBytes / 1024 {
			at, err := h.pages.AllocObject(1024)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, at)
		}
		return all
	}
	full := fill()
	held := h.pages.Figures().Metadata
	for _, keep := range []bool{true, false} {
		drain := func() {
			for _, at := range full {
				h.pages.FreeObject(at, 1024)
			}
			h.pages.FreeEmptySlabs()
		}
		if keep {
			h.pages.KeepSlabs(drain)
		} else {
			drain()
		}
		if now := h.pages.Figures().Metadata; (now == held) != keep {
			t.Errorf("kept: %v: %d bytes of %d are left", keep, now, held)
		}
		full = fill()
	}
	h.pages.Alarm.Stop()
	h.pages.KeepSlabs(func() {
		for _, at := range full {
			h.pages.FreeObject(at, 1024)
		}
	})
	if !h.pages.Alarm.Set() {
		t.Error("no tick follows")
	}
	for _, tick := range []bool{false, true} {
		if tick {
			h.pages.PurgeUnused()
		}
		if now := h.pages.Figures().Metadata; (now == held) == tick {
			t.Errorf("a tick: %v: %d bytes of %d are left", tick, now, held)
		}
	}
}
