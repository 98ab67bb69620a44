// Close: the traces of a closed heap, and the reuse of its addresses.

package pages

import (
	"runtime/debug"
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

func TestClosedMemoryFaultsAndIsRecycled(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 1<<20)
	fill(b, 9)
	h.Close()
	if !vm.GoBacked {
		fault := func() (addr any) {
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			defer func() { addr = recover() }()
			return b[5]
		}()
		if _, ok := fault.(error); !ok {
			t.Errorf("reading closed memory: %v", fault)
		}
	}
	next := newHeap(t, Options{})
	for range 100 {
		c, err := next.Alloc(1<<20, 1, true)
		if err != nil || !allSet(c, 0) {
			t.Fatalf("recycled memory: %v", err)
		}
		fill(c, 3)
	}
}

func TestCloseTwice(t *testing.T) {
	h := newHeap(t, Options{})
	alloc(t, h, 10)
	h.Close()
	h.Close()
	if st := h.Stats(); st.Committed != 0 || st.Allocated != 0 {
		t.Errorf("after Close: %+v", st)
	}
}

func TestClosedHeapTakesNothing(t *testing.T) {
	h := makeHeap(Options{Decay: -1})
	h.Close()
	_, alloc := h.pages.AllocBlock(10, 8, false)
	_, _, run := h.pages.AllocRun(1, PageBytes)
	_, object := h.pages.AllocObject(SpanBytes)
	if alloc != ErrClosed || run != ErrClosed || object != ErrClosed {
		t.Errorf("a block: %v; a run: %v; metadata: %v", alloc, run, object)
	}
	if len(h.pages.metadata.segments) > 0 || len(h.pages.segments) > 0 {
		t.Error("a closed heap holds addresses")
	}
}

func TestMemoryThatCloseCouldNotReturnCountsForTheNextHeap(t *testing.T) {
	h := newHeap(t, Options{})
	fill(alloc(t, h, 3<<20), 1)
	restore := refuse(vm.OpRevoke)
	h.Close()
	restore()
	h = newHeap(t, Options{MaxBytes: 2 << 20})
	if b, err := h.Alloc(3<<20, 8, false); err == nil {
		h.Free(b)
		t.Error("3 MiB under a limit of 2")
	}
	h.Trim()
	h.check(t)
}

// A Free may hold runs that it took from a cache, and return them after a Close beside it.
func TestRunsComeBackAfterClose(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 100<<10)
	s := SpanAt(addrOf(b))
	if !s.Claim(addrOf(b), uintptr(len(b))) {
		t.Fatal("the block is not live")
	}
	h.Close()
	h.pages.FreeRuns(s.Addr())
	h.pages.FreeRun(s)
	if st := h.Stats(); st.Committed != 0 || st.Allocated != 0 {
		t.Errorf("after Close: %+v", st)
	}
}

// A stale span of a closed heap reads zero, without a fault.
func TestMetadataOfAClosedHeapReadsZero(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("on this system what was given back faults")
	}
	h := newHeap(t, Options{})
	s := SpanAt(addrOf(alloc(t, h, 64)))
	h.Close()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if got := panicOf(func() {
		if s.Base != 0 {
			t.Error("the metadata still holds memory")
		}
	}); got != "" {
		t.Error(got)
	}
}

// If metadata cannot be mapped anew, its memory is returned nevertheless.
func TestReturnedMetadataThatIsNotMappedAnewReadsZero(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("on this system what was given back faults")
	}
	var m metadataSpace
	addr, err := m.take()
	if err != nil {
		t.Fatal(err)
	}
	if err := Commit(addr, SlabBytes); err != nil {
		t.Fatal(err)
	}
	*slabAt(addr) = slab{Size: 1}
	defer refuse(vm.OpRevoke)()
	m.give(addr)
	if *slabAt(addr) != (slab{}) {
		t.Error("the segment still holds memory")
	}
}

func TestManyHeapsRecycleAddresses(t *testing.T) {
	use := func() {
		h := newHeap(t, Options{})
		alloc(t, h, 100)
		alloc(t, h, 9<<20)
		h.Close()
	}
	use()
	before := Addresses.First.used.Load()
	for range 200 {
		use()
	}
	if after := Addresses.First.used.Load(); after > before {
		t.Errorf("%d heaps in turn took %d bytes of addresses more", 200, after-before)
	}
}

func TestMetadataAddressesAreUsedAgain(t *testing.T) {
	use := func() {
		h := newHeap(t, Options{})
		alloc(t, h, 100)
		h.Close()
	}
	use()
	before := metadataAddresses.next
	for range 40 {
		use()
	}
	if metadataAddresses.next != before {
		t.Errorf("40 heaps in turn took %d bytes more for metadata", metadataAddresses.next-before)
	}
}

// A tick after Close sets no timer.
func TestTickOfAClosedHeapSetsNoTimer(t *testing.T) {
	h := newHeap(t, Options{Decay: never})
	h.Close()
	h.pages.oversize.busy = true
	h.pages.tickOversize()
	if h.pages.oversize.Alarm.Set() {
		t.Error("a timer is set")
	}
}
