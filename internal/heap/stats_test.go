// Stats: where the memory is, and the calls so far.

package heap

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/vm"
)

func TestStats(t *testing.T) {
	h := newHeap(t, Options{Name: "figures", MaxBytes: 1 << 30})
	if st := h.Stats(); st.Committed != 0 || st.Name != "figures" || st.MaxBytes != 1<<30 || len(st.Classes) != 0 {
		t.Errorf("empty: %+v", st)
	}
	var live [][]byte
	for range 1000 {
		live = append(live, alloc(t, h, 100))
	}
	live = append(live, alloc(t, h, 100000))
	st := h.Stats()
	if st.Blocks != 1001 || st.Allocated != 1000*112+106496 || st.LargeBlocks != 1 || st.LargeBytes != 106496 {
		t.Errorf("%+v", st)
	}
	if len(st.Classes) != 1 || st.Classes[0].Size != 112 || st.Classes[0].Blocks != 1000 {
		t.Fatalf("%+v", st.Classes)
	}
	if c, of := st.Classes[0], int(small.SpanPages(small.ClassFor(100, 1)))*pages.PageBytes/112; c.Blocks+c.Cached+c.Free != c.Spans*of {
		t.Errorf("spans with %d blocks each: %+v", of, c)
	}
	if st.Active < st.Allocated || st.Resident < st.Active+st.Metadata || st.Retained == 0 {
		t.Errorf("%+v", st)
	}
	for _, b := range live {
		h.Free(b)
	}
	if st := h.Stats(); st.Blocks != 0 || st.Allocated != 0 {
		t.Errorf("all freed: %+v", st)
	}
	alloc(t, h, 100)
	h.Close()
	want := Stats{Name: st.Name, MaxBytes: st.MaxBytes}
	st = h.Stats()
	if st.SlowAllocs, st.SlowFrees = 0, 0; !reflect.DeepEqual(st, want) {
		t.Errorf("closed: %+v", st)
	}
}

// Stats counts slow calls, refusals and the bytes given back to the system, which costs the fast
// path nothing.
func TestStatsCountWhatHasPassed(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that there is one cache
	h := newHeap(t, Options{MaxBytes: 8 << 20})
	b := alloc(t, h, 64)
	for range 100 {
		h.Free(b)
		b = alloc(t, h, 64)
	}
	large := alloc(t, h, 1<<20)
	clear(large)
	h.Free(large)
	st := h.Stats()
	// A miss of the small class, the large block, and in some builds a miss more.
	if st.SlowAllocs-2 > 2 || st.SlowFrees-1 > 2 || st.Refusals != 0 || st.PurgedBytes != 0 {
		t.Errorf("%+v", st)
	}
	if _, err := h.Alloc(16<<20, 8, false); err == nil {
		t.Fatal("the limit was passed")
	}
	h.Free(b)
	h.Trim()
	st = h.Stats()
	if want := uint64(1<<20 + small.SpanPages(small.ClassFor(64, 1))*pages.PageBytes); st.Refusals != 1 || st.PurgedBytes != want {
		t.Errorf("%d refusals and %d bytes given back, want 1 and %d", st.Refusals, st.PurgedBytes, want)
	}
}

// Every byte of a heap's addresses is resident, as far as the heap knows, or retained. Free pages
// that hold memory are not active. A block over holes is zero.
func TestResidentAndRetainedAreAllThereIs(t *testing.T) {
	h := newHeap(t, Options{})
	check := func(when string) Stats {
		t.Helper()
		st := h.Stats()
		if st.Resident+st.Retained != int(h.pages.Figures().Total)+st.Metadata {
			t.Errorf("%s: %d resident and %d retained of %d and %d of metadata", when, st.Resident, st.Retained, h.pages.Figures().Total, st.Metadata)
		}
		h.check(t)
		return st
	}
	check("empty")
	var live, kept [][]byte
	for range 3000 {
		b := alloc(t, h, 1000)
		fill(b, 0xA5)
		live = append(live, b)
	}
	check("full")
	for i, b := range live {
		if i%50 == 0 {
			kept = append(kept, b)
		} else {
			h.Free(b)
		}
	}
	before := check("with free blocks")
	h.Free(alloc(t, h, 3<<20))
	if st := check("with free pages"); st.Active != before.Active || st.Committed < before.Committed+3<<20 {
		t.Errorf("after Free of 3 MiB: %+v, before: %+v", st, before)
	}
	h.Trim()
	if st := check("with holes"); vm.HolesReadZero && st.Resident >= before.Resident/2 {
		t.Errorf("%d bytes are resident with 1 block in 50 left, %d before", st.Resident, before.Resident)
	}
	for range len(live) - len(kept) {
		b, _ := h.Alloc(1000, 1, true)
		if !allSet(b, 0) {
			t.Fatal("not zero")
		}
		fill(b, 1)
	}
	for _, b := range kept {
		if !allSet(b, 0xA5) {
			t.Fatal("a survivor changed")
		}
	}
	check("full again")
}

// Every heap has a name.
func TestNames(t *testing.T) {
	a, b := newHeap(t, Options{}).Stats().Name, newHeap(t, Options{}).Stats().Name
	if !strings.HasPrefix(a, "heap ") || !strings.HasPrefix(b, "heap ") || a == b {
		t.Errorf("heaps without a name are called %q and %q", a, b)
	}
	if c := newHeap(t, Options{Name: "c"}).Stats().Name; c != "c" {
		t.Errorf("heap c is called %q", c)
	}
}

// Blocks may come into quarantine while Stats counts. No more of them are free than were live.
func TestNoMoreBlocksAreInQuarantineThanWereLive(t *testing.T) {
	CheckBlocks(t, 1<<20)
	h := newHeap(t, Options{})
	for range 3 {
		h.Free(alloc(t, h, 100))
		h.Free(alloc(t, h, 100000))
	}
	const block, large = 144, 106496 // with their red zones
	before := Stats{
		Blocks: 2, Allocated: block + large, LargeBlocks: 1, LargeBytes: large,
		Classes: []ClassStats{{Size: block, Blocks: 1}},
	}
	h.countFreed(&before)
	want := Stats{Classes: []ClassStats{{Size: block, Cached: 1}}}
	if !reflect.DeepEqual(before, want) {
		t.Errorf("counted before six blocks came: %+v, want %+v", before, want)
	}
}
