//go:build !asan

// Red zones and quarantine: the writes that they detect, and when.

package watch_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/mode"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/test/child"
	"github.com/freehold-go/freehold/internal/watch"
)

func TestWriteBeyondTheEndIsFoundByFree(t *testing.T) {
	keepFreed(t, 1<<20)
	free := map[string]func(h *Heap, b []byte){
		"Free":           (*Heap).Free,
		"FreePointer":    func(h *Heap, b []byte) { h.FreePointer(unsafe.Pointer(&b[0])) },
		"Resize":         func(h *Heap, b []byte) { h.Resize(b, len(b)-1) },
		"Resize to 0":    func(h *Heap, b []byte) { h.Resize(b, 0) },
		"ReallocPointer": func(h *Heap, b []byte) { h.ReallocPointer(unsafe.Pointer(&b[0]), 10*len(b)) },
	}
	for name, f := range free {
		for _, size := range []int{1, 7, 64, 1000, 32 << 10, 100_000, 128 << 10} {
			for _, beyond := range []int{1, 3, watch.RedZone} {
				h := newHeap(t, Options{Name: "guilty"})
				b := allocHere(h, size)
				fill(b, 9)
				red := behind(b, watch.RedZone)
				was := red[beyond-1]
				red[beyond-1] = 0
				for range 2 { // the block stays live
					mustPanic(t, func() { f(h, b) },
						fmt.Sprintf(`freehold: heap "guilty": the block of %s at %p was written %s beyond its end`, arg.Bytes(size), b, arg.Bytes(beyond)),
						"\n\tallocated at:\n\t\tgithub.com/freehold-go/freehold/internal/watch_test.allocHere\n\t\t\t", "help_test.go:", "TestWriteBeyondTheEndIsFoundByFree")
				}
				if got := panicOf(func() { f(h, b) }); strings.Contains(got, "freed at:") {
					t.Errorf("%s: a live block was freed: %s", name, got)
				}
				red[beyond-1] = was
				if got := panicOf(func() { f(h, b) }); got != "" {
					t.Errorf("%s: %s", name, got)
				}
				h.Close()
			}
		}
	}
}

// A write after Free is found by the call that makes the block leave the quarantine.
func TestWriteAfterFreeIsFoundByWhoeverIsNext(t *testing.T) {
	const size, quarantine = 100, 4096
	keepFreed(t, quarantine)
	t.Cleanup(watch.SetPatrol(0))
	tests := map[string]func(h *Heap){
		"Trim":  (*Heap).Trim,
		"Close": (*Heap).Close,
		"Free": func(h *Heap) {
			for range quarantine / size {
				h.Free(alloc(t, h, size))
			}
		},
		"Resize to 0": func(h *Heap) { h.Resize(alloc(t, h, quarantine-watch.RedZone), 0) },
		"Alloc without memory": func(h *Heap) {
			for {
				if _, err := h.Alloc(size, 8, false); err != nil {
					t.Fatalf("%v, and the quarantine is full", err)
				}
			}
		},
	}
	for name, find := range tests {
		for _, at := range []int{0, 7, size - 1, size + watch.RedZone - 1} {
			t.Run(fmt.Sprint(name, at), func(t *testing.T) {
				h := newHeap(t, Options{Name: "guilty", MaxBytes: 1 << 20})
				b := allocHere(h, size)
				freeHere(h, b)
				unsafe.Slice(&b[0], size+watch.RedZone)[at]++
				mustPanic(t, func() { find(h) },
					fmt.Sprintf(`freehold: heap "guilty": byte %d of the block of 100 bytes at %p was written after its Free`, at, b),
					"\n\tallocated at:\n", "internal/watch_test.allocHere\n", "\n\tfreed at:\n", "internal/watch_test.freeHere\n")
				if name == "Close" {
					if !h.Closed() {
						t.Error("the heap is open")
					}
					return
				}
				if got := panicOf(h.Trim); got != "" {
					t.Errorf("a second panic: %s", got)
				}
			})
		}
	}
}

// A late write is found by the next Alloc as large as the block if nothing else is in quarantine,
// and by the time that the Allocs have checked all of the quarantine otherwise. A block that is
// freed meanwhile does not hide another one.
func TestLateWriteIsFoundByTheNextAllocs(t *testing.T) {
	const patrol = 4 << 10
	keepFreed(t, 1<<20)
	t.Cleanup(watch.SetPatrol(patrol))
	for _, size := range []int{1, 100, patrol, 100_000, 900_000} {
		for _, others := range []int{0, 1, 1000} {
			for _, first := range []int{0, others / 2, others} { // where the block is in the quarantine
				h := newHeap(t, Options{Name: "guilty"})
				blocks := make([][]byte, others+1)
				for i := range blocks {
					blocks[i] = alloc(t, h, map[bool]int{true: size, false: 64}[i == first])
				}
				for _, b := range blocks {
					h.Free(b)
				}
				for range first / 7 { // the cursor is anywhere
					h.Free(alloc(t, h, 1))
				}
				blocks[first][size-1]++
				_, _, held := h.Watch().Count()
				most, late := 1+held/patrol, ""
				if others == 0 {
					most = 1
				}
				n := 0
				for ; late == "" && n < most; n++ {
					late = panicOf(func() { alloc(t, h, size) })
				}
				if !strings.Contains(late, fmt.Sprintf("byte %d of the block of %s at %p was written after its Free", size-1, arg.Bytes(size), blocks[first])) {
					t.Errorf("%d bytes, %d of %d: %d Allocs say %q", size, first, others+1, n, late)
				}
				if live, _, after := h.Watch().Count(); live != n-1 || after != held-size-watch.RedZone {
					t.Errorf("%d bytes, %d of %d: %d blocks are live after %d Allocs of which the last panicked, %d bytes in quarantine, before %d", size, first, others+1, live, n, after, held)
				}
				if got := panicOf(func() { h.Trim(); alloc(t, h, size) }); got != "" {
					t.Errorf("a second panic: %s", got)
				}
				check(t, h)
				h.Close()
			}
		}
	}
}

// Free fills the block, and Alloc hands it out zeroed if that is asked for.
func TestFreedBlockHoldsTheFill(t *testing.T) {
	keepFreed(t, 1<<20)
	h := newHeap(t, Options{})
	for _, size := range []int{1, 100, 40_000, 200_000} {
		for range 30 {
			b, err := h.Alloc(size, 8, true)
			if err != nil || !allSet(b, 0) {
				t.Fatalf("%d bytes: %v, %x", size, err, b[:1])
			}
			fill(b, 1)
			h.Free(b)
			if !allSet(b, watch.FillByte) {
				t.Fatalf("%d bytes hold %x after Free", size, b[:1])
			}
		}
	}
}

// A block that the quarantine cannot hold is freed at once, and not filled.
func TestQuarantineIsBounded(t *testing.T) {
	const bound = 1 << 16
	keepFreed(t, bound)
	sampleAt(t, 1)
	h := newHeap(t, Options{Name: nameOf(t)})
	for i := range 3000 {
		h.Free(alloc(t, h, 1+i%300))
		if _, _, held := h.Watch().Count(); held > bound || i > 1000 && held < bound-300-watch.RedZone {
			t.Fatalf("%d bytes in a quarantine of %d", held, bound)
		}
	}
	b := alloc(t, h, bound)
	_, _, held := h.Watch().Count()
	h.Free(b)
	if _, _, after := h.Watch().Count(); after != held {
		t.Error("a block larger than the quarantine got there")
	}
	mustPanic(t, func() { h.Free(b) }, "double free")
	if u := usage(nameOf(t))[""]; u.FreeObjects != 3001 || u.FreeBytes != u.AllocBytes {
		t.Errorf("all is free, and the samples say %+v", u)
	}
	h.Trim()
	if live, freed, held := h.Watch().Count(); live != 0 || freed != 0 || held != 0 {
		t.Errorf("after Trim: %d records of live blocks and %d of freed ones, %d bytes", live, freed, held)
	}
}

// Quarantine never makes a heap refuse.
func TestQuarantineEndsBeforeMemoryDoes(t *testing.T) {
	keepFreed(t, 1<<30)
	h := newHeap(t, Options{MaxBytes: 2 << 20})
	for i := range 300 {
		h.Free(alloc(t, h, 1+i*1000))
	}
	if st := h.Stats(); st.Refusals != 0 {
		t.Errorf("%d refusals", st.Refusals)
	}
	if _, err := h.Alloc(3<<20, 8, false); err == nil {
		t.Error("3 MiB of 2")
	}
	if st := h.Stats(); st.Refusals != 1 {
		t.Errorf("%d refusals, want 1", st.Refusals)
	}
}

// An Alloc that has no memory for a red zone keeps no record, nor does one that finds a late
// write on the way.
func TestAllocThatFailsHasNoRecord(t *testing.T) {
	const size = 10 << 10 // that of a class, so a red zone makes it another's
	h, other := newHeap(t, Options{MaxBytes: 1 << 20}), newHeap(t, Options{})
	alloc(t, h, size) // so that there is a block of the class
	keepFreed(t, 1<<30)
	t.Cleanup(watch.SetPatrol(0))
	b := alloc(t, h, size)
	h.Free(b)
	b[0]++
	for watch.Kept() > 0 {
		alloc(t, other, 1)
	}
	for want := 2; want > 0; want-- { // with that of the block that was written
		var err error
		for says := ""; says == "" && err == nil; {
			says = panicOf(func() { _, err = h.Alloc(size, 8, false) })
		}
		if got := watch.Kept(); got != want {
			t.Errorf("%d records without a block, want %d; %v", got, want, err)
		}
		for watch.Kept() > 0 {
			alloc(t, other, 1)
		}
	}
}

// Resize keeps the block in place where the engine can.
func TestResizeWithRedZones(t *testing.T) {
	keepFreed(t, 1<<20)
	h := newHeap(t, Options{})
	for _, sizes := range [][2]int{{100, 90}, {40_000, 200_000}, {200_000, 100_000}, {3 << 20, 9 << 20}} {
		b := alloc(t, h, sizes[0])
		fill(b, 7)
		r, ok := h.Resize(b, sizes[1])
		if !ok {
			if sizes[1] <= sizes[0] {
				t.Errorf("%d: not in place", sizes)
			}
			h.Free(b)
			continue
		}
		if !allSet(r[:min(sizes[0], sizes[1])], 7) || len(r) != sizes[1] || cap(r) != sizes[1] {
			t.Errorf("%d: %d bytes of %d", sizes, len(r), cap(r))
		}
		behind(r, 1)[0]++
		if all := h.Watch().WriteMistakes(); len(all) != 1 || strings.Contains(all[0], "freed at:") {
			t.Errorf("%d: %q", sizes, all)
		}
		mustPanic(t, func() { h.Free(r) }, "beyond its end")
		behind(r, 1)[0]--
		h.Free(r)
	}
	b := alloc(t, h, 100)
	if _, ok := h.Resize(b, 5000); ok {
		t.Error("100 bytes became 5000 in place")
	}
	if _, ok := h.Resize(b, math.MaxInt/2); ok {
		t.Error("100 bytes became all")
	}
	h.Free(b)
}

// Blocks have the alignment that they were asked for, where they move for a red zone too.
func TestAlignmentWithRedZones(t *testing.T) {
	keepFreed(t, 1<<20)
	h := newHeap(t, Options{})
	for size := 1; size < 1<<20; size = size*5 + 8 {
		for align := 8; align <= 1<<16; align *= 2 {
			if b, err := h.Alloc(size, align, false); err != nil || uintptr(unsafe.Pointer(&b[0]))%uintptr(align) != 0 {
				t.Errorf("%d bytes aligned to %d: %v, at %p", size, align, err, b)
			}
		}
	}
}

// A write is found without a call that panics with it, and still by that.
func TestWriteMistakes(t *testing.T) {
	keepFreed(t, 1<<20)
	h := newHeap(t, Options{Name: "mistakes"})
	live, freed := allocHere(h, 100), allocHere(h, 200)
	freeHere(h, freed)
	if got := h.Watch().WriteMistakes(); len(got) != 0 {
		t.Errorf("%q", got)
	}
	freed[7]++
	behind(live, 3)[2]++
	for range 2 {
		got := strings.Join(h.Watch().WriteMistakes(), "\n")
		for _, want := range []string{"byte 7 of the block of 200 bytes at ", "was written after its Free\n\tallocated at:\n", "watch_test.freeHere\n",
			"the block of 100 bytes at ", "was written 3 bytes beyond its end\n\tallocated at:\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in %s", want, got)
			}
		}
	}
	mustPanic(t, func() { h.Free(live) }, "beyond its end")
	mustPanic(t, func() { h.Trim() }, "after its Free")
	fill(behind(live, 3), watch.FillByte)
	h.Free(live)
}

// lateWrites returns a heap with four blocks in quarantine. The second, of 101 bytes, and the
// third were written after their Free.
func lateWrites(t *testing.T) (h *Heap, second []byte) {
	h = newHeap(t, Options{Name: "guilty"})
	var all [4][]byte
	for i := range all {
		all[i] = alloc(t, h, 100+i)
	}
	for _, b := range all {
		h.Free(b)
	}
	all[1][7]++
	all[2][5]++
	return h, all[1]
}

// Of several late writes, that to the block that was freed first is told. All blocks have
// left the quarantine by then.
func TestFirstOfManyLateWritesIsTold(t *testing.T) {
	keepFreed(t, 1<<20)
	for name, find := range map[string]func(h *Heap){"Trim": (*Heap).Trim, "Close": (*Heap).Close} {
		h, b := lateWrites(t)
		mustPanic(t, func() { find(h) }, fmt.Sprintf("byte 7 of the block of 101 bytes at %p was written after its Free", b))
		if live, freed, held := h.Watch().Count(); live != 0 || freed != 0 || held != 0 {
			t.Errorf("after %s: %d records of live blocks and %d of freed ones, %d bytes", name, live, freed, held)
		}
		if got := panicOf(func() { find(h) }); got != "" {
			t.Errorf("%s again: %s", name, got)
		}
	}
}

// A Close that finds a late write has given back all memory before it panics.
func TestCloseThatFindsALateWriteIsComplete(t *testing.T) {
	keepFreed(t, 1<<20)
	h, _ := lateWrites(t)
	mustPanic(t, h.Close, "was written after its Free")
	if st := h.Stats(); st.Committed != 0 || st.Blocks != 0 || st.Retained != 0 {
		t.Errorf("the closed heap has memory or addresses: %+v", st)
	}
}

// Small blocks in quarantine count as cached, in their class.
func TestSmallBlocksInQuarantineAreCached(t *testing.T) {
	keepFreed(t, 1<<20)
	h := newHeap(t, Options{})
	all := [][]byte{alloc(t, h, 100), alloc(t, h, 100), alloc(t, h, 1000)}
	before := h.Stats()
	for _, b := range all {
		h.Free(b)
	}
	after := h.Stats()
	freed := 0
	for i, c := range before.Classes {
		n := c.Blocks - after.Classes[i].Blocks
		if cached := after.Classes[i].Cached - c.Cached; cached != n {
			t.Errorf("size %d: %d blocks were freed, and %d more are cached", c.Size, n, cached)
		}
		freed += n
	}
	if freed != len(all) {
		t.Errorf("%d blocks were freed, want %d", freed, len(all))
	}
}

// A block that was moved is not known at its old address, which may be another heap's next.
func TestMovedBlockIsForgotten(t *testing.T) {
	keepFreed(t, 1<<20)
	h := newHeap(t, Options{})
	b := alloc(t, h, 9<<20)
	alloc(t, h, 40000) // so that it cannot grow in place
	r, ok := h.Resize(b, 12<<20)
	if !ok {
		t.Skip("pages are not moved here")
	}
	if addrOf(r) == addrOf(b) {
		t.Fatal("the block grew in place")
	}
	if n := h.Watch().Size(addrOf(b)); n != 0 {
		t.Errorf("at the old address there is a block of %d bytes", n)
	}
	if n := live(h); n != 2 {
		t.Errorf("%d blocks are known, want 2", n)
	}
}

// A red zone does not make a size overflow.
func TestLargestSizesWithRedZones(t *testing.T) {
	keepFreed(t, 1<<20)
	h := newHeap(t, Options{})
	b := alloc(t, h, 100)
	for _, size := range []int{math.MaxInt, math.MaxInt - watch.RedZone, math.MaxInt - watch.RedZone + 1} {
		if got := panicOf(func() {
			if _, err := h.Alloc(size, 1, false); err == nil {
				t.Errorf("%d bytes", size)
			}
			if n := h.GoodSize(size); n != size {
				t.Errorf("GoodSize(%d) is %d", size, n)
			}
			if _, ok := h.Resize(b, size); ok {
				t.Errorf("100 bytes became %d", size)
			}
		}); got != "" {
			t.Errorf("%d bytes: %s", size, got)
		}
	}
	h.Free(b)
}

// FREEHOLD_DEBUG says how much is kept in quarantine, and so whether blocks have red zones.
func TestQuarantineOfTheEnvironment(t *testing.T) {
	if child.Is(t) {
		fmt.Printf("in quarantine: %d\n", watch.SetQuarantine(0))
		return
	}
	for mode, want := range map[string]int{
		"":                        0,
		"leak":                    0,
		"poison":                  mode.DefaultQuarantine,
		"quarantine":              mode.DefaultQuarantine,
		"quarantine=1":            0,
		"quarantine=10000":        10000,
		"poison,quarantine=10000": 10000,
		"quarantine=0":            0,
		"quarantine=0,poison":     mode.DefaultQuarantine,
	} {
		out, _, err := child.Run(t, "FREEHOLD_DEBUG="+mode)
		if line := fmt.Sprintf("in quarantine: %d\n", want); err != nil || !strings.Contains(out, line) {
			t.Errorf("FREEHOLD_DEBUG=%s: %v, no %q in\n%s", mode, err, line, out)
		}
	}
}

// The records of all heaps are in one table, by address. A call of a heap that is closed meanwhile
// leaves none there, because the addresses may be another heap's by then.
func TestCallsBesideCloseLeaveNoRecords(t *testing.T) {
	for _, tt := range []struct {
		name       string
		quarantine int
		call       func(h *Heap, b []byte)
	}{
		{"Alloc", 0, func(h *Heap, b []byte) { h.Close(); h.Watch().Resized(b) }}, // samples, as Alloc does
		{"Free", 1 << 20, func(h *Heap, b []byte) { h.Watch().FreeBeside(b, h.Close, watch.HoldTaken) }},
		{"Free without room", 1, func(h *Heap, b []byte) { h.Watch().FreeBeside(b, h.Close, watch.FreeTaken) }},
		{"Free of a written block", 1 << 20, func(h *Heap, b []byte) { h.Watch().FreeBeside(b, h.Close, watch.KeepTaken) }},
		{"Resize", 1 << 20, func(h *Heap, b []byte) {
			h.Watch().RefuseResize(h.Close)
			h.Resize(b, 2*len(b))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := watch.Records()
			sampleAt(t, 1)
			keepFreed(t, tt.quarantine)
			h := newHeap(t, Options{})
			b := alloc(t, h, 100)
			_ = panicOf(func() { tt.call(h, b) })
			if n := watch.Records(); n != before {
				t.Errorf("%d records, want %d", n, before)
			}
			other := newHeap(t, Options{})
			b = alloc(t, other, 100) // maybe at the address of the first
			if h.Watch().Free("Heap.Free", pages.SpanAt(uintptr(unsafe.Pointer(&b[0]))), b); live(other) != 1 {
				t.Error("a closed heap freed another heap's block")
			}
			other.Free(b)
		})
	}
}
