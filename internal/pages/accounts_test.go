// Accounts: the charges, refunds and notes of each operation.

package pages

import (
	"syscall"
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

// An aligned run may begin far inside a free run. The last page of the part in front of it may
// be in another segment: its tables are charged.
func TestRunBeforeAnAlignedOnePaysForItsTables(t *testing.T) {
	h := newHeap(t, Options{})
	run := alloc(t, h, 32*SegmentBytes)
	h.Free(run)
	const align = 4 * SegmentBytes
	for n := -int(addrOf(run)) & (align - 1); n > 0; n = 0 {
		alloc(t, h, n) // fills up to a multiple of align
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

// When a block is cut or grows at a segment's end, the tables on both sides are charged.
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

// A block grows into all of the free run behind it, and the free run's span is freed.
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

// A block grows over the free run behind it into unused addresses.
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

// If moving a block leaves an inaccessible run, the timer starts.
func TestLostRunOfAMovedBlockWakesTheTimer(t *testing.T) {
	h := newHeap(t, Options{Decay: never})
	h.Free(alloc(t, h, 32<<20)) // a free run as the target of the move
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

// A failed move may have left holes, so the run is mapped anew.
func TestRunOfAFailedMoveIsMappedAnew(t *testing.T) {
	h := newHeap(t, Options{})
	h.Free(alloc(t, h, 32<<20)) // a free run as the target of the move
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

// A second purge continues after the first: runs that were tried are at the end of their bin.
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

// A purge returns the requested number of pages, whichever runs they are in.
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

// If the system refused to take a run's memory back, a tick tries again, even if another run of
// the same length has no memory.
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

// The rest of a run that the system refused to take back counts as refused too: ticks do not try
// it again.
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

// A bin has the runs for purge first. Otherwise dirtyRun, which stops at the first other run, would
// leave them their memory.
func TestRunsForPurgeAreFirst(t *testing.T) {
	p := &newHeap(t, Options{}).pages
	p.mu.Lock()
	defer p.mu.Unlock()
	var b bins
	for _, run := range []Span{{dirty: 1}, {dirty: 1, purgeTried: true}, {}, {dirty: 2}, {dirty: 5, purgeTried: true}} {
		s, err := p.newSpan()
		if err != nil {
			t.Fatal(err)
		}
		defer p.freeSpan(s)
		s.pages, s.dirty, s.purgeTried = 5, run.dirty, run.purgeTried
		b.insert(s)
	}
	n, others := 0, false
	for at := b.lists[bin(5)].Head; at != 0; at = SpanPtr(at).Next {
		s := SpanPtr(at)
		if s.dirty == 0 || s.purgeTried {
			others = true
		} else if n++; others {
			t.Errorf("a run of %d dirty pages is behind others", s.dirty)
		}
	}
	if n != 2 {
		t.Errorf("%d runs for purge, want 2", n)
	}
}

// below finds each bin that holds a run.
func TestBinsBelow(t *testing.T) {
	for i := range numBins {
		var b bins
		b.filled[i/64] |= 1 << (i % 64)
		if b.below(numBins) != i || b.below(i+1) != i || b.below(i) != -1 {
			t.Errorf("bin %d is found as %d, %d and %d", i, b.below(numBins), b.below(i+1), b.below(i))
		}
	}
}

// If the system refuses a segment as large as the heap, the heap asks for one that fits the
// request.
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

// A request is served if it needs exactly the bytes that free pages can return.
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

// If the system is out of memory and there is no limit, all free pages are returned.
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

// A slab that the system refused to commit is available for the next try.
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
