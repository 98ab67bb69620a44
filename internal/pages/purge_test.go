// Purge: the free pages that a tick returns, and those that it keeps.

package pages

import (
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

// The low-water mark: pages that were free during a whole tick are returned. Pages that were
// needed during it stay.
func TestTickReturnsWhatWasNotNeeded(t *testing.T) {
	h := newHeap(t, Options{})
	idle, busy := alloc(t, h, 10<<20), alloc(t, h, 1<<20)
	h.Free(idle)
	h.Tick() // the memory was in use for a part of this tick
	if st := h.Stats(); st.Resident < 11<<20 {
		t.Errorf("after a tick in which it was in use: %+v", st)
	}
	h.Free(busy)
	busy = alloc(t, h, 1<<20)
	h.Tick()
	if st := h.Stats(); st.Resident > 3<<20 {
		t.Errorf("after a tick without use: %+v", st)
	}
	h.Free(busy)
	h.check(t)
}

// Pages that a block used for a moment of a tick count as needed.
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
	if had := h.pages.dirty * PageBytes; had != 2<<20 {
		t.Errorf("%d bytes are left of 3 MiB of which 2 were needed", had)
	}
}

func TestTickKeepsWhatEveryTickNeeds(t *testing.T) {
	h := newHeap(t, Options{})
	h.Free(alloc(t, h, 101<<20))
	for range 3 {
		h.Free(alloc(t, h, 100<<20))
		h.Tick()
	}
	if h.pages.dirty*PageBytes < 99<<20 {
		t.Errorf("%d MiB left", h.pages.dirty*PageBytes>>20)
	}
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

func TestLongRunsAreGivenBackFirst(t *testing.T) {
	h := newHeap(t, Options{})
	short, _, long, _ := alloc(t, h, 1<<20), alloc(t, h, 40000), alloc(t, h, 2<<20), alloc(t, h, 40000)
	h.Free(short)
	h.Free(long)
	h.pages.Scavenging.Lock()
	h.pages.Purge(1 << 20 / PageBytes)
	h.pages.Scavenging.Unlock()
	of := func(b []byte) uintptr { return SpanAt(addrOf(b)).dirty * PageBytes }
	if of(short) != 1<<20 || of(long) != 1<<20 {
		t.Errorf("1 MiB went: %d bytes are left of 1 MiB in a short run, %d of 2 MiB in a long one", of(short), of(long))
	}
	h.check(t)
}

func TestHugePagesAreNotSplit(t *testing.T) {
	h := newHeap(t, Options{HugePages: true})
	h.Free(alloc(t, h, 16*60*PageBytes)) // makes one free run for the following blocks
	var live, free [][]byte
	for range 16 { // 8 MiB with a block in every huge page
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

// atEachSlice calls f after each slice of a purge of h, until the test ends. h's timer must not
// purge meanwhile.
func atEachSlice(t *testing.T, h *testHeap, f func()) {
	onSlice = func(p *Heap) {
		if p == &h.pages {
			f()
		}
	}
	t.Cleanup(func() { onSlice = nil })
}

// During a purge all of a heap's free pages can be allocated at any moment, and the limit does
// not refuse them.
func TestPurgeKeepsNoAddresses(t *testing.T) {
	const limit = 48 << 20
	h := newHeap(t, Options{MaxBytes: limit, Decay: never})
	useAndFree(t, h, 40<<20)
	total, slices := h.pages.total, 0
	atEachSlice(t, h, func() {
		if slices++; slices%10 == 0 {
			h.Free(alloc(t, h, 40<<20))
		}
	})
	h.pages.Scavenging.Lock()
	h.pages.Purge(40 << 20 / PageBytes)
	h.pages.Scavenging.Unlock()
	if slices < 40<<20/PageBytes/slicePages {
		t.Errorf("%d slices", slices)
	}
	if h.pages.total != total {
		t.Errorf("the heap's addresses grew from %d to %d bytes", total, h.pages.total)
	}
}

// Stats are exact between two slices: pages that are being purged do not count as active.
func TestActiveWhilePurging(t *testing.T) {
	h := newHeap(t, Options{Decay: never})
	live := alloc(t, h, 1<<20)
	useAndFree(t, h, 20<<20)
	want, slices := h.Stats().Active, 0
	atEachSlice(t, h, func() {
		slices++
		if got := h.Stats().Active; got != want {
			t.Errorf("Active is %d after slice %d, want %d", got, slices, want)
		}
	})
	h.Trim()
	if slices < 20<<20/PageBytes/slicePages {
		t.Errorf("%d slices", slices)
	}
	h.Free(live)
}

// The lowest pages are allocated first, so they keep their memory the longest.
func TestPurgeWorksDownFromTheEnd(t *testing.T) {
	h := newHeap(t, Options{})
	run := alloc(t, h, 8<<20)
	addr := addrOf(run)
	h.Free(run)
	h.pages.Scavenging.Lock()
	h.pages.Purge(300)
	h.pages.Scavenging.Unlock()
	r := Addresses.RegionOf(addr)
	if first, pages := r.pageIndex(addr), uintptr(8<<20/PageBytes); r.dirty.Count(first, pages-300) != pages-300 || r.dirty.Count(first+pages-300, 300) != 0 {
		t.Errorf("of %d pages the first %d are not those that are left", pages, pages-300)
	}
}

// Whatever happens to the run between two slices, purge goes on and ends.
func TestRunsThatChangeUnderAPurge(t *testing.T) {
	const size = 8 << 20
	for _, c := range []struct {
		name string
		do   func(h *testHeap)
	}{
		{"its beginning is taken", func(h *testHeap) { alloc(t, h, PageBytes) }},
		{"it is taken and comes back dirty", func(h *testHeap) { useAndFree(t, h, size) }},
		{"most of it is taken", func(h *testHeap) { alloc(t, h, size*3/4) }},
	} {
		h := newHeap(t, Options{Decay: never})
		barrier := alloc(t, h, PageBytes)
		useAndFree(t, h, size)
		slices := 0
		atEachSlice(t, h, func() {
			if slices++; slices == 3 {
				c.do(h)
			}
		})
		h.pages.Scavenging.Lock()
		h.pages.Purge(^uintptr(0))
		dirty := h.pages.dirty * PageBytes
		h.pages.Scavenging.Unlock()
		if most := uintptr(3 * slicePages * PageBytes); dirty > most {
			t.Errorf("%s: %d bytes are left of the purge, want %d at most", c.name, dirty, most)
		}
		h.check(t)
		h.Free(barrier)
	}
}
