// What each operation charges, gives back and notes.

package pages

import (
	"syscall"
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

// A run that begins far inside a free one leaves a part before it whose last page
// is in a segment of its own: it is paid for.
func TestRunBeforeAnAlignedOnePaysForItsTables(t *testing.T) {
	h := newHeap(t, Options{})
	run := alloc(t, h, 32*SegmentBytes)
	h.Free(run)
	const align = 4 * SegmentBytes
	for n := -int(addrOf(run)) & (align - 1); n > 0; n = 0 {
		alloc(t, h, n) // up to a multiple of align
	}
	alloc(t, h, 40000)
	b, err := h.Alloc(40000, align, false)
	if err != nil {
		t.Fatal(err)
	}
	if s := Addresses.First.Span(addrOf(b) - PageBytes); Addresses.First.Holds(addrOf(b)) && (s == nil || s.Kind != FreeRun || s.Bytes() < 3*SegmentBytes) {
		t.Fatalf("before the block is %+v", s)
	}
	h.check(t)
}

// A block that is cut, or grows, at a segment's end leaves both sides paid for.
func TestResizeAtASegmentsEndPaysForItsTables(t *testing.T) {
	h := newHeap(t, Options{})
	run := alloc(t, h, 8*SegmentBytes)
	h.Free(run)
	b, err := h.Alloc(3*SegmentBytes, SegmentBytes, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{2 * SegmentBytes, 4 * SegmentBytes} {
		r, ok := h.Resize(b, size)
		if !ok || addrOf(r) != addrOf(b) {
			t.Fatalf("no %d bytes in place", size)
		}
		b = r
		h.check(t)
	}
}

// A free run that is just long enough serves a block in front of it, and its span
// goes.
func TestBlockGrowsIntoAllOfAFreeRun(t *testing.T) {
	h := newHeap(t, Options{})
	b, behind, _ := alloc(t, h, 1<<20), alloc(t, h, 1<<20), alloc(t, h, 40000)
	h.Free(behind)
	r, ok := h.Resize(b, 2<<20)
	if !ok || addrOf(r) != addrOf(b) {
		t.Error("the block did not grow in place")
	}
	h.check(t)
}

// A block grows over the free run behind it into addresses that nobody had.
func TestBlockGrowsBeyondAFreeRun(t *testing.T) {
	takeNewAddresses(t)
	h := newHeap(t, Options{})
	b := alloc(t, h, 3<<20)
	r, ok := h.Resize(b, 6<<20)
	if !ok || addrOf(r) != addrOf(b) {
		t.Error("the block did not grow in place")
	}
	h.check(t)
}

// A block that moved away and left a run without access wakes the timer.
func TestLostRunOfAMovedBlockWakesTheTimer(t *testing.T) {
	h := newHeap(t, Options{Decay: never})
	h.Free(alloc(t, h, 32<<20)) // room to move to
	b := alloc(t, h, copyBytes+1)
	alloc(t, h, 40000)
	h.pages.Alarm.Stop()
	restore := refuse(vm.OpCommit)
	_, ok := h.Resize(b, 12<<20)
	restore()
	if !ok {
		t.Skip("pages are not moved here")
	}
	if h.pages.unmapped.Head == 0 || !h.pages.Alarm.Set() {
		t.Errorf("run lost: %v; the timer runs: %v", h.pages.unmapped.Head != 0, h.pages.Alarm.Set())
	}
}

// A move that failed may have left holes, so the run is mapped anew.
func TestRunOfAFailedMoveIsMappedAnew(t *testing.T) {
	h := newHeap(t, Options{})
	h.Free(alloc(t, h, 32<<20)) // room to move to
	b := alloc(t, h, copyBytes+1)
	alloc(t, h, 40000)
	var moves, renewals int
	restore := vm.SetFault(func(op vm.Op) error {
		switch op {
		case vm.OpMove:
			moves++
			return syscall.ENOMEM
		case vm.OpRenew:
			renewals++
		}
		return nil
	})
	_, ok := h.Resize(b, 12<<20)
	restore()
	if moves == 0 {
		t.Skip("pages are not moved here")
	}
	if ok || renewals != 1 {
		t.Errorf("moved: %v; %d runs were mapped anew, want 1", ok, renewals)
	}
	h.check(t)
}

// A second purge continues where the first ended: runs that were purged are behind the
// others of their bin.
func TestPurgeInTwoSteps(t *testing.T) {
	h := newHeap(t, Options{})
	const n = 128 // pages
	a, _, b, _ := alloc(t, h, n*PageBytes), alloc(t, h, 40000), alloc(t, h, n*PageBytes), alloc(t, h, 40000)
	h.Free(a)
	h.Free(b)
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	for _, want := range []uintptr{n, 0} {
		h.pages.Purge(n)
		if h.pages.dirty != want {
			t.Errorf("%d pages hold memory, want %d", h.pages.dirty, want)
		}
	}
}

// As much is purged as was asked for, whichever runs it is in.
func TestPurgeKeepsPartOfTheLastRunOnly(t *testing.T) {
	h := newHeap(t, Options{})
	a, _, b, _ := alloc(t, h, 1<<20), alloc(t, h, 40000), alloc(t, h, 2<<20), alloc(t, h, 40000)
	h.Free(a)
	h.Free(b)
	h.pages.Scavenging.Lock()
	h.pages.Purge((2<<20 + 1<<19) / PageBytes)
	h.pages.Scavenging.Unlock()
	if got := h.pages.dirty * PageBytes; got != 1<<19 {
		t.Errorf("%d bytes are left of 3 MiB, of which 2.5 were to go", got)
	}
}

// A run that the system refused to take back is tried again though another of its
// length holds nothing.
func TestRefusedRunIsRetriedBeforeOthers(t *testing.T) {
	h := newHeap(t, Options{})
	a, _, b, _ := alloc(t, h, 1<<20), alloc(t, h, 40000), alloc(t, h, 1<<20), alloc(t, h, 40000)
	h.Free(a)
	h.Trim()
	h.Free(b)
	restore := refuse(vm.OpDecommit)
	h.Tick()
	h.Tick()
	restore()
	if h.pages.dirty == 0 {
		t.Fatal("nothing was refused")
	}
	h.Trim()
	if h.pages.dirty != 0 {
		t.Errorf("%d pages hold memory", h.pages.dirty)
	}
}

// What is left of a run that the system refused to take back is as refused as it
// was: ticks do not try it again.
func TestRestOfARefusedRunIsNotRetried(t *testing.T) {
	h := newHeap(t, Options{})
	run, _ := alloc(t, h, 1<<20), alloc(t, h, 40000)
	h.Free(run)
	restore := refuse(vm.OpDecommit)
	h.Tick()
	h.Tick()
	restore()
	had := h.pages.dirty
	first := alloc(t, h, 40000)
	b, err := h.Alloc(40000, 64<<10, false)
	if err != nil {
		t.Fatal(err)
	}
	if before, at := addrOf(b)-addrOf(first), addrOf(first)-addrOf(run); before <= 40000 || at >= 1<<20 {
		t.Fatal("the blocks are not in the run, apart")
	}
	for range 3 {
		h.Tick()
	}
	if want := had - 2*5; h.pages.dirty != want {
		t.Errorf("%d pages hold memory, want the %d that were refused", h.pages.dirty, want)
	}
}

// Each bin that holds a run is found from above.
func TestBinsBelow(t *testing.T) {
	for i := range numBins {
		var b bins
		b.filled[i/64] |= 1 << (i % 64)
		if b.below(numBins) != i || b.below(i+1) != i || b.below(i) != -1 {
			t.Errorf("bin %d is found as %d, %d and %d", i, b.below(numBins), b.below(i+1), b.below(i))
		}
	}
}

// Where the system refuses a segment as large as the heap, it is asked for one
// that serves.
func TestSmallSegmentWhereALargeOneIsRefused(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("segments are committed when they are used")
	}
	h := newHeap(t, Options{})
	alloc(t, h, 32<<20)
	total := h.pages.total
	calls := 0
	restore := vm.SetFault(func(op vm.Op) error {
		if calls++; calls == 1 {
			return syscall.ENOMEM
		}
		return nil
	})
	_, err := h.pages.AllocBlock(6<<20, 8, false)
	restore()
	if grown := h.pages.total - total; err != nil || grown != 8<<20 {
		t.Errorf("a segment of %d bytes for 6 MiB: %v", grown, err)
	}
}

func TestLimitSaysWhatItRefused(t *testing.T) {
	h := newHeap(t, Options{Name: "small", MaxBytes: 1 << 20})
	alloc(t, h, 100)
	for call, err := range map[string]error{"charge": h.pages.charge(2 << 20), "mayCharge": h.pages.mayCharge(2 << 20 / PageBytes)} {
		if want := `freehold: out of memory: heap "small": 2097152 bytes more would exceed the limit of 1048576`; err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", call, err, want)
		}
	}
}

// A request that takes exactly what free pages can give up is served.
func TestFreePagesMayGiveUpTheLastByte(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 64 << 20})
	clean, _, dirty, _ := alloc(t, h, 1<<20), alloc(t, h, 40000), alloc(t, h, 8*PageBytes), alloc(t, h, 40000)
	h.Free(clean)
	h.Trim()
	h.Free(dirty)
	h.pages.MaxBytes = h.pages.committed
	if err := h.pages.mayCharge(8); err != nil {
		t.Error(err)
	}
	if h.pages.mayCharge(9) == nil {
		t.Error("9 pages where 8 can be given back")
	}
}

// Without a limit it is the system that has no more: all that is free goes.
func TestAllFreePagesGoWhereTheSystemHasNoMore(t *testing.T) {
	h := newHeap(t, Options{})
	a, _, b, _ := alloc(t, h, 10<<20), alloc(t, h, 40000), alloc(t, h, 10<<20), alloc(t, h, 40000)
	h.Free(a)
	h.Free(b)
	if !h.pages.PurgeFor(1) || h.pages.dirty != 0 {
		t.Errorf("%d pages hold memory", h.pages.dirty)
	}
}

func TestWhatIsGivenBackAtOnceIsCounted(t *testing.T) {
	h := newHeap(t, Options{WholePages: true})
	h.Free(alloc(t, h, 1<<20))
	if st := h.Stats(); st.PurgedBytes != 1<<20 || st.Committed != st.Metadata {
		t.Errorf("of 1 MiB %d bytes were given back: %+v", st.PurgedBytes, st)
	}
}

// A slab that the system refuses is there for the next try.
func TestRefusedSlabIsNotLost(t *testing.T) {
	h := newHeap(t, Options{})
	alloc(t, h, 100)
	h.pages.mu.Lock()
	defer h.pages.mu.Unlock()
	had := len(h.pages.metadata.unused)
	restore := refuse(vm.OpCommit)
	_, err := h.pages.newSlab(MaxObject)
	restore()
	if err == nil || len(h.pages.metadata.unused) != had {
		t.Errorf("%d of %d slabs are left after the error %v", len(h.pages.metadata.unused), had, err)
	}
}
