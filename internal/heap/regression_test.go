package heap

import (
	"errors"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// refuse has the system refuse every call of one kind.
func refuse(refused vm.Op) (restore func()) {
	return vm.SetFault(func(op vm.Op) error {
		if op == refused {
			return syscall.ENOMEM
		}
		return nil
	})
}

func TestPurgedRunsArePurgedAgainAfterUse(t *testing.T) {
	h := newHeap(t, Options{})
	for range 3 {
		b := alloc(t, h, 10<<20)
		fill(b, 1)
		h.Free(b)
		h.Tick()
		h.Tick()
		if st := h.Stats(); st.Committed != st.Metadata {
			t.Fatalf("%+v", st)
		}
	}
}

func TestTickKeepsWhatEveryTickNeeds(t *testing.T) {
	h := newHeap(t, Options{})
	h.Free(alloc(t, h, 101<<20))
	for range 3 {
		h.Free(alloc(t, h, 100<<20))
		h.Tick()
	}
	if h.pages.dirty*pageBytes < 99<<20 {
		t.Errorf("%d MiB left", h.pages.dirty*pageBytes>>20)
	}
}

func TestTrimTriesAgainWhatWasRefused(t *testing.T) {
	h := newHeap(t, Options{})
	h.Free(alloc(t, h, 10<<20))
	restore := refuse(vm.OpDecommit)
	h.Trim()
	restore()
	h.Trim()
	if st := h.Stats(); st.Committed != st.Metadata {
		t.Errorf("%+v", st)
	}
}

func TestHugePagesAreGivenBackWhole(t *testing.T) {
	h := newHeap(t, Options{HugePages: true})
	var live [][]byte
	for range 20 {
		b, err := h.Alloc(1<<20, 2<<20, false)
		if err != nil {
			t.Fatal(err)
		}
		fill(b, 1)
		live = append(live, b)
	}
	for _, b := range live {
		h.Free(b)
	}
	h.Trim()
	if st := h.Stats(); st.Committed != st.Metadata {
		t.Errorf("%+v", st)
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

func TestRefusedRequestsTakeNoAddresses(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 8 << 20})
	b := alloc(t, h, 3<<20)
	before := h.pages.total
	for i := range 20 {
		h.Alloc((i+1)<<24, 8, false)
		h.Resize(b, (i+1)<<24)
	}
	if h.pages.total > before+segmentBytes {
		t.Errorf("%d bytes of addresses more", h.pages.total-before)
	}
	h.Free(b)
}

// A pair costs the same whatever lies free beside it, system calls included.
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
		var objects [12]uintptr // more than a slab has
		for i := range objects {
			objects[i], _ = h.pages.newObject(3000)
		}
		for _, addr := range objects {
			h.pages.dropObject(addr, 3000)
		}
	}
	if h.pages.metadata.bytes-before > 3*slabBytes {
		t.Errorf("%d bytes for three slabs", h.pages.metadata.bytes-before)
	}
}

func TestClosedHeapTakesNothing(t *testing.T) {
	h := makeHeap(Options{Decay: -1})
	h.Close()
	panicOf(func() { h.Alloc(10, 8, false) })
	if len(h.pages.metadata.segments) > 0 || len(h.pages.segments) > 0 {
		t.Error("a closed heap holds addresses")
	}
}

// The bystander in the span of a block that two goroutines freed at once.
func TestBlockFreedTwiceAtOnceHarmsNoOther(t *testing.T) {
	h := newHeap(t, Options{})
	b, c := alloc(t, h, 32768), alloc(t, h, 32768)
	fill(c, 7)
	addr := uintptr(unsafe.Pointer(&b[0]))
	s := spanAt(addr)
	if s != spanAt(uintptr(unsafe.Pointer(&c[0]))) {
		t.Fatal("not one span")
	}
	h.Free(b)
	freeAgain(t, h, nil, s.class, entry{addr, s.statusOf(s.index(addr))})
	h.Trim()
	d := alloc(t, h, 200000)
	fill(d, 9)
	if !allSet(c, 7) {
		t.Error("a live block was handed out again")
	}
	h.Free(c)
	h.Free(d)
}

func TestRunThatWasLostHasAccessWhenItIsBack(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 1<<20)
	alloc(t, h, 40000) // so that it cannot grow in place
	b, ok := h.Resize(b, 8<<20)
	if !ok {
		t.Skip("pages are not moved here")
	}
	restore := refuse(vm.OpCommit)
	h.Free(b)
	restore()
	if h.pages.unmapped.head == 0 {
		t.Fatal("the run was not lost")
	}
	h.Tick()
	if h.pages.unmapped.head != 0 {
		t.Fatal("the run is still lost")
	}
	b = alloc(t, h, 8<<20)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if got := panicOf(func() { b[5] = 1 }); got != "" {
		t.Error(got)
	}
}

func TestZeroedOverPartlyUsedPages(t *testing.T) {
	h := newHeap(t, Options{})
	used := alloc(t, h, 40000)
	fill(used, 1)
	h.Free(used)
	b, err := h.Alloc(4<<20-pageBytes, 8, true)
	if err != nil {
		t.Fatal(err)
	}
	if !allSet(b, 0) {
		t.Error("not zero")
	}
	h.check(t)
}

func TestPagesAreZeroWhatTheSystemRefuses(t *testing.T) {
	h := newHeap(t, Options{WholePages: true})
	b := alloc(t, h, 8192)
	fill(b, 1)
	restore := refuse(vm.OpDecommit)
	h.Free(b)
	restore()
	b, _ = h.Alloc(8192, 8, true)
	if !allSet(b, 0) {
		t.Error("not zero")
	}
}

func TestEmptySliceOfALiveBlockIsNoBlock(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 100)
	for _, cut := range [][]byte{b[:0], b[:0:0]} {
		if got := panicOf(func() { h.Free(cut) }); got == "" {
			t.Errorf("an empty slice with capacity %d was taken", cap(cut))
		}
	}
	h.Free(b)
	h.Free([]byte{})
	h.Free(nil)
}

// The status of a free block is a number too: no slice has that length.
func TestSliceAsLongAsTheStateOfAFreeBlockIsNoBlock(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 100)
	h.Free(b)
	for _, n := range []int{freeZero, freeDirty, freeDirty + 1, freeDirty + 1 + 100} {
		if got := panicOf(func() { h.Free(unsafe.Slice(&b[0], n)) }); got == "" {
			t.Errorf("a slice of %d bytes was taken", n)
		}
		if got := panicOf(func() { h.free(unsafe.Slice(&b[0], n)) }); got == "" {
			t.Errorf("a slice of %d bytes was taken by the Go path", n)
		}
	}
}

// A limit below the span of a class leaves room for blocks of it.
func TestSmallLimitHoldsBlocksOfEveryClass(t *testing.T) {
	for _, size := range []int{16, 1000, 5000, 32 << 10} {
		h := newHeap(t, Options{MaxBytes: 128 << 10})
		var live [][]byte
		for {
			b, err := h.Alloc(size, 8, false)
			if err != nil {
				if !errors.Is(err, ErrOutOfMemory) {
					t.Error(err)
				}
				break
			}
			fill(b, 3)
			live = append(live, b)
		}
		if len(live) == 0 {
			t.Errorf("no block of %d bytes", size)
		}
		for _, b := range live {
			if !allSet(b, 3) {
				t.Error("a block changed")
			}
			h.Free(b)
		}
	}
}

// A region is one reservation: where a part of several were refused, the others
// would be taken for good.
func TestRegionIsOneReservation(t *testing.T) {
	reserved := 0
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpReserve {
			reserved++
		}
		return nil
	})
	defer restore()
	for _, tagged := range []bool{false, true} {
		reserved = 0
		if err := new(region).reserve(segmentBytes, tagged); err != nil || reserved != 1 {
			t.Errorf("%d reservations, %v", reserved, err)
		}
	}
}

// More heaps than page map entries have numbers for: those beyond work as well, and find
// what is another's.
func TestManyHeaps(t *testing.T) {
	var heaps []*Heap
	for range noMapID + 10 {
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

// What the system does not say or do changes what is resident, and no byte.
func TestZeroedWhateverTheSystemRefuses(t *testing.T) {
	for _, refused := range []vm.Op{vm.OpResident, vm.OpDecommit} {
		for _, size := range []int{3 << 20, 20<<20 + 5*pageBytes} {
			h := newHeap(t, Options{})
			b := alloc(t, h, size)
			fill(b[:size/3], 1)
			fill(b[size/2:], 1)
			h.Free(b)
			restore := refuse(refused)
			b, err := h.Alloc(size, 8, true)
			restore()
			if err != nil || !allSet(b, 0) {
				t.Errorf("%v is refused, %d bytes: not zero, %v", refused, size, err)
			}
			h.Close()
		}
	}
}

// The pages of an answer are cleared though there is none to the next question.
func TestZeroedWhereTheSystemStopsAnswering(t *testing.T) {
	if !vm.TellsResident {
		t.Skip("this system never answers")
	}
	h := newHeap(t, Options{})
	size := askPages*int(vm.PageBytes()) + 4<<20
	b := alloc(t, h, size)
	fill(b, 1)
	h.Free(b)
	asked := 0
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpResident {
			if asked++; asked > 1 {
				return syscall.ENOMEM
			}
		}
		return nil
	})
	b, err := h.Alloc(size, 8, true)
	restore()
	if err != nil || asked != 2 || !allSet(b, 0) {
		t.Errorf("not zero, after %d questions, %v", asked, err)
	}
}

// Whole units are dropped, the ends are cleared, and the neighbours stay.
func TestDroppingClearsTheEnds(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 6<<20+3*pageBytes)
	for _, size := range []int{pageBytes, 1 << 20, 2 << 20, 6 << 20} {
		fill(b, 1)
		part := b[pageBytes:][:size]
		zeroByDropping(addrOf(part), uintptr(size), vm.HugePageBytes)
		if !allSet(part, 0) {
			t.Errorf("%d bytes: not zero", size)
		}
		if !allSet(b[:pageBytes], 1) || !allSet(b[pageBytes+size:], 1) {
			t.Errorf("%d bytes: the neighbours changed", size)
		}
	}
}

func TestZeroingTakesNoGoMemory(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 4<<20)
	b[0] = 1
	h.Free(b)
	if n := testing.AllocsPerRun(100, func() {
		b, _ := h.Alloc(4<<20, 8, true)
		h.Free(b)
	}); n > 0 {
		t.Errorf("%v Go allocations", n)
	}
}

// At its limit a heap serves a small block by pages, and shrinks it all the same.
func TestSmallBlockThatIsPagesIsResized(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 128 << 10})
	var live [][]byte
	tried := 0
	for {
		b, err := h.Alloc(5000, 8, false)
		if err != nil {
			break
		}
		fill(b, 5)
		live = append(live, b)
	}
	for i, b := range live {
		if spanAt(uintptr(unsafe.Pointer(&b[0]))).kind != largeRun {
			continue
		}
		tried++
		for _, size := range []int{100, 8000, 2000} {
			r, ok := h.Resize(b, size)
			if !ok || len(r) != size || !allSet(r[:100], 5) {
				t.Fatalf("Resize of %d bytes to %d: %v", len(b), size, ok)
			}
			b = r
		}
		if _, ok := h.Resize(b, pageBytes+1); ok {
			t.Error("a small block grew over pages that a class serves better")
		}
		live[i] = b
	}
	if tried == 0 {
		t.Error("no small block is pages: try another limit")
	}
	for _, b := range live {
		h.Free(b)
	}
}
