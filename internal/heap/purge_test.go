// Purge: which free pages a tick gives back, and which it keeps.

package heap

import (
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

// The low-water mark: what was free during a whole tick goes, what was needed
// in it stays.
func TestTickReturnsWhatWasNotNeeded(t *testing.T) {
	h := newHeap(t, Options{})
	idle, busy := alloc(t, h, 10<<20), alloc(t, h, 1<<20)
	h.Free(idle)
	h.Tick() // the memory was in use for a part of this one
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
	h.pages.scavenging.Lock()
	h.pages.purge(1 << 20 / pageBytes)
	h.pages.scavenging.Unlock()
	of := func(b []byte) uintptr { return spanAt(addrOf(b)).dirty * pageBytes }
	if of(short) != 1<<20 || of(long) != 1<<20 {
		t.Errorf("1 MiB went: %d bytes are left of 1 MiB in a short run, %d of 2 MiB in a long one", of(short), of(long))
	}
	h.check(t)
}

// A run that is freed beside one being purged is purged too.
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
