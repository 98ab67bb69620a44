// What must happen before what: moves, refusals, ticks and closing, each forced
// into the order in which it could go wrong.

package heap

import (
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/vm"
)

const never = time.Duration(1) << 50 // a decay whose timer does not fire here

func addrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// callsOf counts what f asks of the system.
func callsOf(f func()) (calls [vm.NumOps]int) {
	defer vm.SetFault(func(op vm.Op) error { calls[op]++; return nil })()
	f()
	return calls
}

// moved returns a block of 4 MiB that was moved there, and skips the test where
// pages are not moved.
func moved(t *testing.T, h *Heap) []byte {
	t.Helper()
	b := alloc(t, h, 1<<20)
	alloc(t, h, 40000) // so that it cannot grow in place
	fill(b, 1)
	r, ok := h.Resize(b, 4<<20)
	if !ok {
		t.Skip("pages are not moved here")
	}
	if addrOf(r) == addrOf(b) {
		t.Fatal("the block grew in place")
	}
	return r
}

func TestMovedBlockKeepsItsAlignment(t *testing.T) {
	const align, pages = 1 << 20, 3 << 20 / pageBytes
	h := newHeap(t, Options{})
	b, err := h.Alloc(1<<20, align, false)
	if err != nil {
		t.Fatal(err)
	}
	h.Free(alloc(t, h, 32<<20)) // room to move to ...
	for h.pages.free.fit(pages) == nil || h.pages.free.fit(pages).base%align == 0 {
		alloc(t, h, 40000) // ... that begins at no multiple
	}
	alloc(t, h, 40000)
	r, ok := h.Resize(b, pages*pageBytes)
	if !ok {
		t.Skip("pages are not moved here")
	}
	if addrOf(r) == addrOf(b) || addrOf(r)%align != 0 {
		t.Errorf("a block at %#x, a multiple of %#x, was moved to %#x", addrOf(b), align, addrOf(r))
	}
}

// Each mapping that a move makes is one too many for those that a process may
// have, until the pages are mapped anew.
func TestMovedPagesAreMappedAnewBeforeOthersHaveThem(t *testing.T) {
	h := newHeap(t, Options{HugePages: true})
	var b []byte
	var calls [vm.NumOps]int
	renewed := func(after string) {
		t.Helper()
		if calls[vm.OpRenew] != 1 || calls[vm.OpAdvise] == 0 || calls[vm.OpName] == 0 {
			t.Errorf("after %s the pages were mapped anew %d times, huge ones asked for %d times, and a name given %d times",
				after, calls[vm.OpRenew], calls[vm.OpAdvise], calls[vm.OpName])
		}
	}
	calls = callsOf(func() { b = moved(t, h) })
	renewed("the move from them")
	calls = callsOf(func() { b, _ = h.Resize(b, 2<<20) })
	renewed("they were cut off")
	calls = callsOf(func() { h.Free(b) })
	renewed("Free")
}

// Advice of which the system took a part ends with the block too.
func TestAdviceThatFailedEndsWithItsBlock(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 1<<20)
	restore := refuse(vm.OpAdvise)
	err := Advise(b, vm.Sequential)
	restore()
	if err == nil {
		t.Fatal("the advice was taken")
	}
	if calls := callsOf(func() { h.Free(b) }); calls[vm.OpRenew] != 1 {
		t.Errorf("the pages were mapped anew %d times", calls[vm.OpRenew])
	}
}

// lose has the system leave a run of 4 MiB without access.
func lose(t *testing.T, h *Heap) {
	t.Helper()
	b := moved(t, h)
	h.pages.alarm.stop()
	restore := refuse(vm.OpCommit)
	h.Free(b)
	restore()
	if h.pages.unmapped.head == 0 {
		t.Fatal("the run was not lost")
	}
}

func TestLostRunWakesTheTimer(t *testing.T) {
	h := newHeap(t, Options{Decay: never})
	lose(t, h)
	if !h.pages.alarm.set() {
		t.Error("asleep with a run to map anew")
	}
}

func TestLostRunIsNotFree(t *testing.T) {
	h := newHeap(t, Options{})
	lose(t, h)
	h.check(t)
}

func TestTrimMapsLostRunsAnew(t *testing.T) {
	h := newHeap(t, Options{})
	lose(t, h)
	h.Trim()
	if st := h.Stats(); h.pages.unmapped.head != 0 || st.Active != st.LargeBytes {
		t.Errorf("after Trim: %+v", st)
	}
}

// Before the heap gives up what the system refused, it tries again what the system
// refused before.
func TestRefusalMapsLostRunsAnew(t *testing.T) {
	h := newHeap(t, Options{})
	lose(t, h)
	drained := false
	defer pin.OnWait(func(p *pin.Holders) { drained = drained || p == &h.caches.Holders })()
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpCommit && !drained {
			return syscall.ENOMEM
		}
		return nil
	})
	_, err := h.Alloc(256<<20, 8, false)
	restore()
	if err != nil || !drained {
		t.Fatalf("drained: %v, %v", drained, err)
	}
	if h.pages.unmapped.head != 0 {
		t.Error("the run is still lost")
	}
}

func TestRefusalTriesAgainWhatWasRefused(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 2<<20 - 1}) // so low that it counts at each refusal
	small, _ := alloc(t, h, 1000), alloc(t, h, 1000)
	b, _ := alloc(t, h, 1<<20), alloc(t, h, 40000)
	h.Free(b)
	restore := refuse(vm.OpDecommit)
	h.Trim()
	restore()
	h.Free(small)        // something to drain ...
	h.drainedAt.Store(0) // ... that was not drained just now
	b, err := h.Alloc(1<<20+pageBytes, 8, false)
	if err != nil {
		t.Fatal(err)
	}
	h.Free(b)
}

// What only caches hold is memory too: a limit does not refuse before it is
// tried.
func TestLimitEmptiesCachesFirst(t *testing.T) {
	const limit, size = 2 << 20, 32 << 10
	h := newHeap(t, Options{MaxBytes: limit})
	var live [][]byte
	for {
		b, err := h.Alloc(size, 8, false)
		if err != nil {
			break
		}
		live = append(live, b)
	}
	for _, b := range live {
		h.Free(b)
	}
	for i := range h.central { // nothing is left but what the caches hold
		h.central[i].shrink(h)
	}
	if !h.hasCaches() {
		t.Fatal("there are no caches")
	}
	if b, err := h.Alloc(limit-h.Stats().Metadata-slabBytes, 8, false); err != nil {
		t.Error(err)
	} else {
		h.Free(b)
	}
}

// The timer runs as long as free pages hold memory.
func TestTimerRunsUntilFreePagesAreGivenBack(t *testing.T) {
	h := newHeap(t, Options{Decay: never})
	h.Free(alloc(t, h, 1<<20))
	for range 10 {
		h.Tick()
		if h.pages.dirty > 0 && !h.pages.alarm.set() {
			t.Fatalf("asleep with %d free pages of memory", h.pages.dirty)
		}
	}
	if h.pages.dirty > 0 || h.pages.alarm.set() {
		t.Errorf("%d free pages of memory, awake: %v", h.pages.dirty, h.pages.alarm.set())
	}
}

func TestClassThatMovesBlocksKeepsItsStock(t *testing.T) {
	h := newHeap(t, Options{})
	var live [][]byte
	for range 5000 {
		live = append(live, alloc(t, h, 64))
	}
	for _, b := range live {
		h.Free(b)
	}
	c := &h.central[classFor(64, 8)]
	before := c.stocked
	if st := h.Stats(); st.Blocks != 0 {
		t.Errorf("%d blocks are live, of which %d are in stock", st.Blocks, before)
	}
	h.Tick()
	if before == 0 || c.stocked != before {
		t.Errorf("%d blocks were in stock, and %d after a tick in which the class moved some", before, c.stocked)
	}
}

func TestHolesAreMadeOnce(t *testing.T) {
	if !makesHoles {
		t.Skip("this system has no holes")
	}
	h := newHeap(t, Options{})
	var live [][]byte
	for range 2000 {
		live = append(live, alloc(t, h, 1000))
	}
	for i, b := range live {
		if i%50 > 0 {
			h.Free(b)
		}
	}
	if calls := callsOf(h.Trim); calls[vm.OpDecommit] == 0 {
		t.Fatal("no holes were made")
	}
	if calls := callsOf(h.Trim); calls[vm.OpDecommit] != 0 {
		t.Errorf("%d system calls for holes that are there", calls[vm.OpDecommit])
	}
}

func TestHolesGrowWithWhatIsFreed(t *testing.T) {
	if !makesHoles {
		t.Skip("this system has no holes")
	}
	h := newHeap(t, Options{})
	const size = 4096
	var live [][]byte
	for range classes[classFor(size, 1)].blocks {
		live = append(live, alloc(t, h, size))
	}
	holes := 0
	for range 2 {
		for _, b := range live[:2] {
			h.Free(b)
		}
		live = live[2:]
		h.Trim()
		now := h.central[classFor(size, 1)].holes
		if now <= holes {
			t.Errorf("holes of %d bytes, and %d after more was freed", holes, now)
		}
		holes = now
	}
	for _, b := range live {
		h.Free(b)
	}
}

// keepBusy moves blocks of a class, so that the next tick drains no cache.
func keepBusy(t *testing.T, h *Heap) {
	t.Helper()
	var live [][]byte
	for range 1000 {
		live = append(live, alloc(t, h, 200))
	}
	for _, b := range live {
		h.Free(b)
	}
}

// A class that was at rest and moves blocks again comes to rest again, while
// others work: its stock goes home.
func TestClassRestsAgain(t *testing.T) {
	h := newHeap(t, Options{})
	c := &h.central[classFor(64, 1)]
	rest := func() {
		t.Helper()
		for range 2 {
			keepBusy(t, h)
			h.Tick()
		}
		if !c.rested || c.stocked != 0 {
			t.Errorf("at rest: %v, with %d blocks in stock", c.rested, c.stocked)
		}
	}
	var live [][]byte
	for range 5000 {
		live = append(live, alloc(t, h, 64))
	}
	rest()
	for _, b := range live {
		h.Free(b)
	}
	if c.stocked == 0 {
		t.Error("nothing is in stock")
	}
	rest()
}

// What a cache gives back to a class at rest goes on to the system, while other
// classes work.
func TestClassAtRestGivesBackWhatACacheReturned(t *testing.T) {
	h := newHeap(t, Options{})
	o := newLocalCache(h)
	c := &h.central[classFor(4096, 1)]
	b, err := o.Alloc(4096, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	o.Free(b)
	for range 2 {
		keepBusy(t, h)
		h.Tick()
	}
	if !c.rested || c.spans != 1 {
		t.Fatalf("at rest: %v, with %d spans", c.rested, c.spans)
	}
	o.Close()
	keepBusy(t, h)
	h.Tick()
	if c.spans != 0 {
		t.Error("the span is still there")
	}
}

// The timer does not stop before the caches' blocks have become holes.
func TestTimerRunsUntilHolesAreMade(t *testing.T) {
	if !makesHoles {
		t.Skip("this system has no holes")
	}
	h := newHeap(t, Options{Decay: never})
	var live [][]byte
	for range classes[classFor(4096, 1)].blocks {
		live = append(live, alloc(t, h, 4096))
	}
	for _, b := range live[:2] { // into a cache
		h.Free(b)
	}
	for n := 0; h.pages.alarm.set(); n++ {
		if n > 20 {
			t.Fatal("the timer does not stop")
		}
		h.Tick()
	}
	if h.central[classFor(4096, 1)].holes == 0 {
		t.Error("no holes were made")
	}
}

// Nor do holes split huge pages.
func TestHolesSplitNoHugePages(t *testing.T) {
	h := newHeap(t, Options{HugePages: true})
	var live [][]byte
	for range classes[classFor(4096, 1)].blocks {
		live = append(live, alloc(t, h, 4096))
	}
	for _, b := range live[:2] {
		h.Free(b)
	}
	h.Trim()
	if holes := h.central[classFor(4096, 1)].holes; holes != 0 {
		t.Errorf("holes of %d bytes", holes)
	}
}

// Two goroutines freed one block at once, a third has it now, and the second
// entry goes home.
func TestBlockFreedTwiceAtOnceStaysItsThirdOwners(t *testing.T) {
	h := newHeap(t, Options{})
	o := newLocalCache(h) // whose place is known
	defer o.Close()
	b, _ := o.Alloc(64, 1, false)
	class, e := entryOf(b)
	o.Free(b)
	freeAgain(t, h, o, class, e)
	third, _ := o.Alloc(64, 1, false)
	if addrOf(third) != addrOf(b) {
		t.Fatal("the block was not handed out again")
	}
	h.Trim()
	if st := h.Stats(); st.Blocks != 1 {
		t.Errorf("%d blocks are live, want the third's", st.Blocks)
	}
	h.check(t)
	for range 2000 {
		if c := alloc(t, h, 64); addrOf(c) == addrOf(third) {
			t.Fatal("the block has two owners")
		}
	}
	h.Free(third)
}

func TestEmptySliceOfALargeBlockIsNoBlock(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 100000)
	for _, at := range []int{0, 10, 50000} {
		cut := unsafe.Slice(&b[at], 0)
		if cap(cut) != 0 || panicOf(func() { h.Free(cut) }) == "" {
			t.Errorf("an empty slice %d bytes into the block was taken", at)
		}
	}
	h.Free(b)
}

// Memory that lies free in a heap is used before memory that the system would
// have to find.
func TestRunsThatHoldMemoryAreUsedFirst(t *testing.T) {
	h := newHeap(t, Options{})
	clean, _, dirty, _ := alloc(t, h, 40000), alloc(t, h, 40000), alloc(t, h, 40000), alloc(t, h, 40000)
	h.Free(clean)
	h.Trim()
	h.Free(dirty)
	if b := alloc(t, h, 40000); addrOf(b) != addrOf(dirty) {
		t.Errorf("the run at %#x without memory was taken, and not that at %#x", addrOf(b), addrOf(dirty))
	}
}

func TestBestRunOfABinIsTaken(t *testing.T) {
	h := newHeap(t, Options{})
	const small, large = 66, 71
	if bin(small) != bin(large) {
		t.Fatal("two bins")
	}
	best, _, first, _ := alloc(t, h, small*pageBytes), alloc(t, h, 40000), alloc(t, h, large*pageBytes), alloc(t, h, 40000)
	h.Free(best)
	h.Free(first) // it stands in front
	if b := alloc(t, h, small*pageBytes); addrOf(b) != addrOf(best) {
		t.Errorf("a run of %d pages was broken for %d", large, small)
	}
}

// A run with room for the worst case of an alignment is long enough for it.
func TestAlignmentTakesNoMoreThanItNeeds(t *testing.T) {
	h := newHeap(t, Options{})
	run, _ := alloc(t, h, 6*pageBytes), alloc(t, h, 40000)
	h.Free(run)
	b, err := h.Alloc(5*pageBytes, 2*pageBytes, false)
	if err != nil {
		t.Fatal(err)
	}
	if at := addrOf(b) - addrOf(run); at > pageBytes {
		t.Error("6 free pages did not serve for 5 at a multiple of 2")
	}
}

// What a block had for a moment of a tick was needed in it.
func TestTickKeepsWhatABlockGrewInto(t *testing.T) {
	h := newHeap(t, Options{})
	b, behind := alloc(t, h, 1<<20), alloc(t, h, 2<<20)
	if addrOf(behind) != addrOf(b)+1<<20 {
		t.Fatal("the blocks are no neighbours")
	}
	h.Free(behind)
	h.Tick()
	had := h.pages.dirty
	r, ok := h.Resize(b, 3<<20)
	if !ok || addrOf(r) != addrOf(b) {
		t.Fatal("the block did not grow in place")
	}
	h.check(t)
	h.Resize(r, 1<<20)
	h.Tick()
	if h.pages.dirty != had {
		t.Errorf("%d of %d pages are left that were needed", h.pages.dirty, had)
	}
}

func TestTickKeepsWhatWasInUseForAMoment(t *testing.T) {
	h := newHeap(t, Options{})
	h.Free(alloc(t, h, 3<<20))
	h.Tick()
	h.Free(alloc(t, h, 2<<20))
	h.Tick()
	if had := h.pages.dirty * pageBytes; had != 2<<20 {
		t.Errorf("%d bytes are left of 3 MiB of which 2 were needed", had)
	}
}

func TestLongRunsAreGivenBackFirst(t *testing.T) {
	h := newHeap(t, Options{})
	short, _, long, _ := alloc(t, h, 1<<20), alloc(t, h, 40000), alloc(t, h, 2<<20), alloc(t, h, 40000)
	h.Free(short)
	h.Free(long)
	h.pages.scavenging.Lock()
	h.pages.purge(1 << 20 / pageBytes)
	h.pages.scavenging.Unlock()
	of := func(b []byte) uintptr { return spanAt(addrOf(b)).dirty * pageBytes }
	if of(short) != 1<<20 || of(long) != 1<<20 {
		t.Errorf("1 MiB went: %d bytes are left of 1 MiB in a short run, %d of 2 MiB in a long one", of(short), of(long))
	}
	h.check(t)
}

// What was freed beside a run whose memory was being given back goes too.
func TestRunsFreedDuringAPurgeArePurged(t *testing.T) {
	for _, side := range []int{0, 2} {
		h := newHeap(t, Options{})
		b := [...][]byte{alloc(t, h, 1<<20), alloc(t, h, 1<<20), alloc(t, h, 1<<20)}
		h.Free(b[1])
		calls := 0
		restore := vm.SetFault(func(op vm.Op) error {
			if op == vm.OpDecommit {
				if calls++; calls == 1 {
					h.Free(b[side])
				}
			}
			return nil
		})
		h.pages.scavenging.Lock()
		h.pages.purge(^uintptr(0))
		h.pages.scavenging.Unlock()
		restore()
		if calls == 0 || h.pages.dirty != 0 {
			t.Errorf("side %d: %d free pages with memory after %d calls", side, h.pages.dirty, calls)
		}
	}
}

func TestHugePagesAreNotSplit(t *testing.T) {
	h := newHeap(t, Options{HugePages: true})
	var live, free [][]byte
	for range 16 { // 8 MiB in which every huge page has a block
		live, free = append(live, alloc(t, h, 40000)), append(free, alloc(t, h, 450000))
	}
	for _, b := range free {
		h.Free(b)
	}
	before := h.pages.dirty
	h.Trim()
	if h.pages.dirty != before {
		t.Errorf("%d of %d free pages that share a huge one were given back", before-h.pages.dirty, before)
	}
	for _, b := range live {
		h.Free(b)
	}
}

// Nor are they split where a block is made zero over pages without memory.
func TestZeroingSplitsNoHugePages(t *testing.T) {
	if !vm.TellsResident || !vm.HolesReadZero {
		t.Skip("zeroing gives nothing back here")
	}
	const size, from, to = 2 << 20, 1 << 20, 1<<20 + 64<<10
	h := newHeap(t, Options{HugePages: true})
	b := alloc(t, h, size)
	fill(b, 1)
	if err := vm.Decommit(addrOf(b[from:]), to-from); err != nil {
		t.Fatal(err)
	}
	h.Free(b)
	calls := callsOf(func() { b, _ = h.Alloc(size, 8, true) })
	if calls[vm.OpResident] == 0 || calls[vm.OpDecommit] != 0 {
		t.Errorf("the heap asked %d times what is resident, and gave pages back %d times", calls[vm.OpResident], calls[vm.OpDecommit])
	}
	if !allSet(b, 0) {
		t.Error("not zero")
	}
}

func TestSegmentsAreNamedAndAdvised(t *testing.T) {
	for _, huge := range []bool{false, true} {
		h := newHeap(t, Options{HugePages: huge})
		calls := callsOf(func() { alloc(t, h, 100) })
		if calls[vm.OpName] != 1 || calls[vm.OpAdvise] > 0 != huge {
			t.Errorf("huge pages %v: %d names, %d advices", huge, calls[vm.OpName], calls[vm.OpAdvise])
		}
	}
}

// Segments double, since the search for one and its tables cost the same for
// each.
func TestSegmentsGrowWithTheHeap(t *testing.T) {
	h := newHeap(t, Options{})
	for range 60 {
		alloc(t, h, 1<<20)
	}
	if n := len(h.pages.segments); n > 5 {
		t.Errorf("60 MiB are in %d segments", n)
	}
}

// The last byte below a limit may be had, and the first above it may not.
func TestLimitIsExact(t *testing.T) {
	reached := false
	for limit := int(64<<10 + heldBytes + tableBytes); limit <= 256<<10; limit += pageBytes {
		h := newHeap(t, Options{MaxBytes: limit, WholePages: true})
		for {
			if _, err := h.Alloc(pageBytes, 1, false); err != nil {
				break
			}
		}
		st := h.Stats()
		if st.Committed > limit || st.Committed < limit-slabBytes {
			t.Errorf("%d bytes of %d", st.Committed, limit)
		}
		reached = reached || st.Committed == limit
		h.Close()
	}
	if !reached {
		t.Error("no limit was reached")
	}
}

// A request is served from free pages though it needs slabs beside them: for a
// span, for its statuses and for a magazine.
func TestRefusalMakesRoomForSlabs(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 4 << 20})
	b := alloc(t, h, 2<<20)
	h.pages.maxBytes = h.pages.committed
	h.Free(b)
	alloc(t, h, 8) // of the class with the shortest span
}

// Nor does a request that is refused keep what it had taken.
func TestRefusalsCostNoMemory(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 4 << 20})
	for {
		if _, err := h.Alloc(40000, 8, false); err != nil {
			break
		}
	}
	refused := 0
	for size := 8; size <= maxSmall; size *= 2 {
		for range 3 {
			if _, err := h.Alloc(size, 8, false); err != nil {
				refused++
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
	h.check(t) // which finds metadata that nobody has

	h = newHeap(t, Options{})
	alloc(t, h, 40000)
	h.pages.maxBytes = h.pages.committed
	if _, err := h.Alloc(100000, 1<<20, false); err == nil {
		t.Error("a run with others before and behind it was not refused")
	}
	h.check(t)
}

// A block that cannot be cut, for its tables would pass the limit, keeps its pages.
func TestCutThatTheLimitRefuses(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 64 << 20})
	b := alloc(t, h, 5*segmentBytes)
	h.pages.maxBytes = h.pages.committed
	r, ok := h.Resize(b, len(b)/2)
	if s := spanAt(addrOf(b)); !ok || s.bytes() != uintptr(len(b)) {
		t.Fatalf("Resize: %v, with %d bytes of pages", ok, s.bytes())
	}
	h.check(t) // which finds metadata that nobody has
	h.Free(r)
}

// Room that is too little for a span of large blocks is enough for one of them.
func TestLargeSmallBlockIsPagesAtTheLimit(t *testing.T) {
	h := newHeap(t, Options{})
	alloc(t, h, 16<<20)
	h.pages.maxBytes = h.pages.committed + 100<<10
	b := alloc(t, h, 32<<10)
	if s := spanAt(addrOf(b)); s.kind != largeRun {
		t.Error("there was room for a span")
	}
}

// held returns how many bytes of addresses the heaps have, or had and left.
func held() (n uintptr) {
	addresses.mu.Lock()
	defer addresses.mu.Unlock()
	n = addresses.first.used.Load()
	for _, f := range addresses.returned {
		n -= f.size
	}
	return n
}

// takeNewAddresses has the heaps of a test take addresses that nobody had, the
// last that there are.
func takeNewAddresses(t *testing.T) {
	others := addresses.returned
	addresses.returned = nil
	t.Cleanup(func() { addresses.returned = append(addresses.returned, others...) })
}

// A segment that cannot be set up goes back.
func TestRefusedSegmentsLoseNoAddresses(t *testing.T) {
	takeNewAddresses(t)
	used := newHeap(t, Options{})
	fill(alloc(t, used, 3<<20), 1)
	restore := refuse(vm.OpRevoke)
	used.Close() // its memory counts for who has its addresses
	restore()
	before := held()
	h := newHeap(t, Options{MaxBytes: 1 << 20})
	if calls := callsOf(func() { h.Alloc(900<<10, 8, false) }); calls[vm.OpRevoke] == 0 {
		t.Error("the limit did not refuse 3 MiB")
	}
	h.check(t)
	h.Close()
	if after := held(); after > before {
		t.Errorf("the limit refused, and %d bytes of addresses are lost", after-before)
	}

	if vm.HolesReadZero {
		h = newHeap(t, Options{})
		commits := 0
		restore = vm.SetFault(func(op vm.Op) error {
			if op == vm.OpCommit {
				if commits++; commits > 1 { // the first is the span's
					return syscall.ENOMEM
				}
			}
			return nil
		})
		_, err := h.Alloc(100000, 8, false)
		restore()
		if err == nil || commits < 2 {
			t.Fatalf("%d commits, %v", commits, err)
		}
		h.check(t)
		h.Close()
		if after := held(); after > before {
			t.Errorf("the system refused, and %d bytes of addresses are lost", after-before)
		}
	}
}

func TestRefusedGrowthTakesNoAddresses(t *testing.T) {
	takeNewAddresses(t)
	h := newHeap(t, Options{MaxBytes: 8 << 20})
	b := alloc(t, h, 3<<20)
	before := held()
	if _, ok := h.Resize(b, 64<<20); ok {
		t.Error("64 MiB with a limit of 8")
	}
	if after := held(); after > before {
		t.Errorf("%d bytes of addresses more", after-before)
	}
}

// newSpace returns a space with one region of n segments.
func newSpace(t *testing.T, n uintptr) *space {
	t.Helper()
	s := new(space)
	if err := s.first.reserve(n*segmentBytes, true); err != nil {
		t.Fatal(err)
	}
	return s
}

func take(t *testing.T, s *space, segments uintptr) uintptr {
	t.Helper()
	addr, err := s.take(segments*segmentBytes, 1)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func TestNobodyGrowsOutOfARegion(t *testing.T) {
	s := newSpace(t, 2)
	addr := take(t, s, 1)
	if err := s.takeAt(addr+segmentBytes, segmentBytes, 1); err != nil {
		t.Errorf("the last segment: %v", err)
	}
	if err := s.takeAt(addr+2*segmentBytes, segmentBytes, 1); err != errTaken {
		t.Errorf("beyond the region: %v", err)
	}
}

func TestReturnedSegmentsAreJoinedOnBothSides(t *testing.T) {
	for _, order := range [][3]uintptr{{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}} {
		s := newSpace(t, 3)
		first := take(t, s, 3)
		for _, i := range order {
			s.give(first+i*segmentBytes, segmentBytes)
		}
		if len(s.returned) != 1 || s.returned[0] != (addrRange{first, 3 * segmentBytes}) {
			t.Errorf("returned in the order %v: %v", order, s.returned)
		}
	}
}

func TestSmallestReturnedSegmentsAreTaken(t *testing.T) {
	s := newSpace(t, 6)
	first := take(t, s, 6)
	s.give(first, 3*segmentBytes)
	s.give(first+4*segmentBytes, segmentBytes)
	if got := take(t, s, 1); got != first+4*segmentBytes {
		t.Error("three segments were broken for one")
	}
	if got := take(t, s, 3); got != first {
		t.Error("three segments are not together any more")
	}
}

// What a heap left in the tables would speak for the next one's blocks.
func TestTablesOfAReturnedSegmentAreEmpty(t *testing.T) {
	s := newSpace(t, 1)
	addr := take(t, s, 1)
	r := &s.first
	for off := uintptr(0); off < segmentBytes; off += pageBytes {
		*r.page(addr + off) = &span{}
		*r.mapEntry(off) = ^uint64(0)
	}
	r.dirty.setRange(0, segmentBytes/pageBytes)
	s.give(addr, segmentBytes)
	for off := uintptr(0); off < segmentBytes; off += pageBytes {
		if *r.page(addr + off) != nil || *r.mapEntry(off) != 0 {
			t.Fatalf("page %d: word %p, tag %#x", off/pageBytes, *r.page(addr + off), *r.mapEntry(off))
		}
	}
	if n := r.dirty.count(0, segmentBytes/pageBytes); n != 0 || *r.owner(addr) != 0 {
		t.Errorf("%d pages hold memory, and the owner is %d", n, *r.owner(addr))
	}
}

// The block of a closed heap is no other heap's, whoever has its number now.
func TestClosedHeapsBlocksAreNobodys(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 64)
	number := h.mapID
	h.Close()
	if st, _ := lookUp(addrOf(b), number); st != 0 {
		t.Error("a heap of the same number would find the block's state")
	}
	next := newHeap(t, Options{})
	if next.mapID != number {
		t.Fatalf("number %#x was given back, and %#x taken", number, next.mapID)
	}
	if next.Owns(b) {
		t.Error("the next heap owns the block")
	}
	if got := next.diagnose("Free", b); !strings.HasPrefix(got, "the memory is not from a freehold heap") {
		t.Errorf("the next heap says that %s", got)
	}
}

func TestOpenHeapsHaveNumbersOfTheirOwn(t *testing.T) {
	seen := map[uint64]bool{}
	for range 3 {
		var heaps []*Heap
		for range 10 {
			h := newHeap(t, Options{})
			if seen[h.mapID] {
				t.Fatalf("two open heaps have the number %#x", h.mapID)
			}
			seen[h.mapID] = true
			heaps = append(heaps, h)
		}
		for _, i := range []int{5, 0, 9} {
			heaps[i].Close()
			delete(seen, heaps[i].mapID)
		}
	}
}

// Whoever still holds a span of a closed heap does not die of it, but its memory
// is gone.
func TestMetadataOfAClosedHeapReadsZero(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("on this system what was given back faults")
	}
	h := newHeap(t, Options{})
	s := spanAt(addrOf(alloc(t, h, 64)))
	h.Close()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if got := panicOf(func() {
		if s.base != 0 {
			t.Error("the metadata still holds memory")
		}
	}); got != "" {
		t.Error(got)
	}
}

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

// Every byte of a heap's addresses is resident, as far as the heap knows, or
// retained.
func TestResidentAndRetainedAreAllThereIs(t *testing.T) {
	h := newHeap(t, Options{})
	check := func(when string) {
		t.Helper()
		if st := h.Stats(); st.Resident+st.Retained != int(h.pages.total)+st.Metadata {
			t.Errorf("%s: %d resident and %d retained of %d and %d of metadata", when, st.Resident, st.Retained, h.pages.total, st.Metadata)
		}
	}
	check("empty")
	var live [][]byte
	for range 3000 {
		live = append(live, alloc(t, h, 1000))
	}
	check("full")
	for i, b := range live {
		if i%50 > 0 {
			h.Free(b)
		}
	}
	h.Free(alloc(t, h, 1<<20))
	check("with free pages")
	h.Trim()
	if makesHoles && h.Stats().Resident == h.Stats().Committed {
		t.Error("there are no holes")
	}
	check("with holes")
}

// What lies free with memory behind it is not active.
func TestFreePagesAreNotActive(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 1<<20)
	if st := h.Stats(); st.Active != 1<<20 {
		t.Errorf("one block of 1 MiB: %+v", st)
	}
	h.Free(b)
	if st := h.Stats(); st.Active != 0 || st.Committed < 1<<20 {
		t.Errorf("after Free: %+v", st)
	}
}

func TestSearchStaysInItsRange(t *testing.T) {
	words := [2]uint64{1 << 20, 1 << 3}
	m := bitmap(unsafe.Pointer(&words[0]))
	for _, tt := range []struct{ i, end, want uintptr }{{0, 10, 10}, {0, 20, 20}, {0, 21, 20}, {21, 64, 64}, {21, 67, 67}, {21, 68, 67}} {
		if got := m.next(tt.i, tt.end, true); got != tt.want {
			t.Errorf("next in [%d, %d) is %d, want %d", tt.i, tt.end, got, tt.want)
		}
	}
}

func TestFreePagesHaveNoTags(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 64)
	if st, _ := lookUp(addrOf(b), h.mapID); st == 0 {
		t.Skip("this heap's blocks have no tags")
	}
	h.Free(b)
	h.Trim()
	if st, _ := lookUp(addrOf(b), h.mapID); st != 0 {
		t.Error("the tag leads to the states of a span that is no more")
	}
}

func TestEmptySlabsAreGivenBack(t *testing.T) {
	h := newHeap(t, Options{WholePages: true})
	var live [][]byte
	for range 2000 {
		live = append(live, alloc(t, h, pageBytes))
	}
	full := h.pages.metadata.bytes
	for _, b := range live {
		h.Free(b)
	}
	if h.pages.metadata.bytes > 2*slabBytes || full < 8*slabBytes {
		t.Errorf("2000 spans took %d bytes in slabs, and %d when they were freed", full, h.pages.metadata.bytes)
	}
}

// Trim gives back the slabs that are kept at hand otherwise.
func TestTrimLeavesNoEmptySlab(t *testing.T) {
	h := newHeap(t, Options{})
	for size := 8; size <= maxSmall; size *= 2 {
		h.Free(alloc(t, h, size))
	}
	h.Trim()
	for _, at := range h.pages.metadata.room {
		for ; at != 0; at = slabAt(at).next {
			if s := slabAt(at); s.live == 0 {
				t.Errorf("a slab for objects of %d bytes is empty", s.size)
			}
		}
	}
}

// A run whose memory is being given back is in no table.
func TestFreeOfWhatIsBeingGivenBackIsNamed(t *testing.T) {
	h := newHeap(t, Options{})
	before, stale := alloc(t, h, 40000), alloc(t, h, 40000)
	if addrOf(stale) != spanAt(addrOf(before)).end() {
		t.Fatal("the blocks are no neighbours")
	}
	h.Free(stale)
	got := ""
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpDecommit && got == "" {
			got = h.diagnose("Free", stale)
		}
		return nil
	})
	h.Trim()
	restore()
	if want := "no block begins there; it was freed before (double free), or never allocated"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What may be dropped is the pages inside a block, not those that it shares.
func TestAdviceStaysInsideTheBlock(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, int(8*vm.PageBytes()))
	if err := Advise(b[:1], vm.DontNeed); err != nil {
		t.Errorf("no whole page: %v", err)
	}
	if err := Advise(make([]byte, 1<<20), vm.WillNeed); err != vm.ErrUnsupported {
		t.Errorf("memory of the Go heap: %v", err)
	}
	fill(b, 5)
	for _, part := range [][2]int{{1, len(b) - 1}, {100, 200}, {1, int(vm.PageBytes()) + 1}} {
		if err := Advise(b[part[0]:part[1]], vm.DontNeed); err != nil {
			t.Skip("this system drops nothing: ", err)
		}
		if !allSet(b[:part[0]], 5) || !allSet(b[part[1]:], 5) {
			t.Errorf("bytes %d to %d were not needed, and others are gone", part[0], part[1])
		}
		fill(b, 5)
	}
}

// The pages that a purge is at work on count as free: a request that fits beside
// what is live waits for the purge and is not refused.
func TestPurgeUnderWayRefusesNothing(t *testing.T) {
	const limit = 64 << 20
	h := newHeap(t, Options{MaxBytes: limit})
	useAndFree(t, h, 48<<20)
	p := &h.pages
	p.mu.Lock()
	batch, pages := p.takeDirty(limit/pageBytes, 1)
	p.purging = pages
	err := p.mayCharge(40 << 20 / pageBytes)
	p.mu.Unlock()
	if err != nil || pages < 48<<20/pageBytes {
		t.Errorf("while %d pages are purged: %v", pages, err)
	}
	if !p.purgeFor(40 << 20 / pageBytes) {
		t.Error("a purge under way is not waited for")
	}
	p.mu.Lock()
	p.purging = 0
	for batch.head != 0 {
		s := spanPtr(batch.head)
		batch.remove(s)
		p.insert(s)
	}
	p.mu.Unlock()
}

// A heap with nothing live but much in its caches gives the first request what
// fits.
func TestFirstRefusalCounts(t *testing.T) {
	const limit = 64 << 20
	h := newHeap(t, Options{MaxBytes: limit})
	for size := 8 << 10; size <= maxSmall; size += 1 << 10 { // to fill the caches
		var live [][]byte
		for range 16 {
			live = append(live, alloc(t, h, size))
		}
		for _, b := range live {
			h.Free(b)
		}
	}
	if n := h.count(); n.cached+n.empty < limit/drainShare {
		t.Fatalf("the caches hold %d bytes", n.cached+n.empty)
	}
	h.Free(alloc(t, h, limit-2<<20))
}

// Neither a count nor a drain in what is the future, of a clock that was set back
// or of a bubble's, keeps a heap from the next.
func TestClockThatWasSetBack(t *testing.T) {
	const limit = 8 << 20
	h := newHeap(t, Options{MaxBytes: limit})
	future := time.Now().Add(time.Hour).UnixNano()
	h.countedAt.Store(future)
	h.drainedAt.Store(future)
	h.Free(alloc(t, h, 8)) // something to drain, less than a share of the limit
	if n := h.count(); n.cached+n.empty == 0 || n.cached+n.empty >= limit/drainShare {
		t.Fatalf("the caches hold %d bytes", n.cached+n.empty)
	}
	if !h.mayCount() || !h.worthADrain() {
		t.Error("no drain")
	}
}

// A refusal tries pages that the system refused to take back again, though there
// is nothing to drain.
func TestRefusalWithoutADrainTriesAgain(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 2<<20 - 1})
	useAndFree(t, h, 1<<20)
	restore := refuse(vm.OpDecommit)
	h.Trim()
	restore()
	if n := h.count(); n.cached+n.empty != 0 || h.pages.dirty == 0 {
		t.Fatalf("%+v, %d free pages of memory", n, h.pages.dirty)
	}
	h.Free(alloc(t, h, 1<<20+8<<10))
}
