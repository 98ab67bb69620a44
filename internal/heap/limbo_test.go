package heap

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

func entryOf(b []byte) (class uint8, e entry) {
	addr := uintptr(unsafe.Pointer(&b[0]))
	s := spanAt(addr)
	return s.class, entry{addr, s.statusOf(s.index(addr))}
}

// goHome returns what caches and stocks hold to the spans, and frees the empty
// ones: a drain, but for limbo.
func goHome(h *Heap) {
	h.caches.Drain(nil, func(taken []*cache) {
		for _, c := range taken {
			h.empty(c)
		}
		for i := range h.central {
			h.central[i].shrink(h)
		}
		for _, c := range taken {
			h.pages.freeObject(c.addr(), cacheBytes)
		}
		h.pages.freeEmptySlabs()
	})
}

// A block that two goroutines freed at once went home by its first entry, its
// span was freed and its pages are another block's. The second entry is still
// in a cache: allocating it is found, and nobody else is harmed.
func TestSecondEntryOutlivesTheSpan(t *testing.T) {
	for _, size := range []int{8, 64, 1000, 32 << 10} {
		t.Run(fmt.Sprintf("size=%d", size), func(t *testing.T) {
			h := newHeap(t, Options{})
			b := alloc(t, h, size)
			class, e := entryOf(b)
			h.Free(b)
			goHome(h)
			if s := spanAt(e.addr); s != nil && s.kind == blockRun {
				t.Fatal("the span is still there")
			}
			o := newLocalCache(h) // whose place is known
			defer o.Close()
			h.addCache(o, 0)
			freeAgain(t, h, o, class, e)

			// What has the pages now, and new statuses.
			over := alloc(t, h, 64<<10)
			fill(over, 9)
			var others [][]byte
			for range 300 {
				others = append(others, alloc(t, h, 24), alloc(t, h, 200))
			}
			for _, b := range others {
				fill(b, 7)
			}
			got := panicOf(func() { o.Alloc(size, 1, false) })
			if !strings.Contains(got, "freed by two goroutines at once") {
				t.Errorf("Alloc of the second entry: panic %q", got)
			}
			for range 300 {
				b, err := o.Alloc(size, 1, false)
				if err != nil {
					t.Fatal(err)
				}
				fill(b, 1)
				others = append(others, b)
			}
			if !allSet(over, 9) {
				t.Error("another's block changed")
			}
			for i, b := range others {
				if !allSet(b, b[0]) {
					t.Fatalf("block %d of others changed", i)
				}
				h.Free(b)
			}
			h.Free(over)
		})
	}
}

// A block that came home by one entry and was allocated by the other is live: its
// span neither hands it out again nor goes while it is.
func TestLiveBlockKeepsItsSpan(t *testing.T) {
	h := newHeap(t, Options{})
	o := newLocalCache(h)
	defer o.Close()
	b, _ := o.Alloc(1000, 1, false)
	class, e := entryOf(b)
	o.Free(b)
	goHome(h) // frees the span, but for an entry that is out twice:
	b, _ = o.Alloc(1000, 1, false)
	class, e = entryOf(b)
	o.Free(b)
	o.slot.Entry().tops[class] -= entryBytes
	c := &h.central[class]
	c.mu.Lock()
	c.returnBlocks(h, []entry{e})
	c.mu.Unlock()
	if was := e.claim(1000); was < freeZero {
		t.Fatal("the second entry is not free")
	}
	live := unsafe.Slice((*byte)(unsafe.Pointer(&b[0])), 1000)
	fill(live, 5)
	h.Trim()
	if s := spanAt(e.addr); s == nil || s.kind != blockRun {
		t.Fatal("the span went with a live block in it")
	}
	var others [][]byte
	for range 200 {
		o := alloc(t, h, 1000)
		fill(o, 6)
		others = append(others, o)
	}
	if !allSet(live, 5) {
		t.Error("the block was handed out again")
	}
	for _, o := range others {
		h.Free(o)
	}
	h.Free(live) // an innocent one: it must not panic
	h.Trim()
	if st := h.Stats(); st.Blocks != 0 || st.Active != 0 {
		t.Errorf("%+v", st)
	}
}

// Random programs in which some frees happen twice at once: each block has one
// owner, no Free of a live block panics, and an Alloc that panics says why.
func TestRandomProgramsWithFreesAtOnce(t *testing.T) {
	programs := 200
	switch {
	case vm.GoBacked:
		programs = 4
	case testing.Short():
		programs = 40
	}
	for seed := range programs {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		h := newHeap(t, Options{})
		o := newLocalCache(h)
		sizes := []int{8, 16, 100, 1000, 9000, 30000, 40000, 100000}
		sizes = sizes[r.IntN(4):]
		var live [][]byte
		check := func(b []byte) {
			if !allSet(b, b[0]) {
				t.Fatalf("seed %d: a block of %d bytes changed", seed, len(b))
			}
		}
		for step := range 3000 {
			switch n := r.IntN(100); {
			case n < 48 || len(live) == 0:
				size := sizes[r.IntN(len(sizes))]
				var b []byte
				got := panicOf(func() {
					if n%2 == 0 {
						b, _ = h.Alloc(size, 1, false)
					} else {
						b, _ = o.Alloc(size, 1, false)
					}
				})
				switch {
				case got == "":
					fill(b, byte(step))
					live = append(live, b)
				case !strings.Contains(got, "freed by two goroutines at once"):
					t.Fatalf("seed %d: Alloc panics with %q", seed, got)
				}
			case n < 96:
				i := r.IntN(len(live))
				b := live[i]
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
				check(b)
				s := spanAt(uintptr(unsafe.Pointer(&b[0])))
				twice := n%8 == 0 && s.kind == blockRun
				var class uint8
				var e entry
				if twice {
					class, e = entryOf(b)
				}
				if n%2 == 0 {
					h.Free(b)
				} else {
					o.Free(b)
				}
				if twice {
					freeAgain(t, h, nil, class, e)
				}
			case n < 98:
				h.Tick()
			case n < 99:
				h.Trim()
			default:
				for len(live) > 0 {
					b := live[len(live)-1]
					live = live[:len(live)-1]
					check(b)
					h.Free(b)
				}
			}
		}
		for _, b := range live {
			check(b)
			h.Free(b)
		}
		o.Close()
		h.Trim()
		if st := h.Stats(); st.Active != 0 || st.Blocks != 0 {
			t.Fatalf("seed %d: %+v", seed, st)
		}
		h.Close()
	}
}

// What is in limbo is bounded, by a drain that the one who frees makes.
func TestLimboIsBounded(t *testing.T) {
	h := newHeap(t, Options{})
	most := int64(0)
	for range 3 {
		var live [][]byte
		for range 200000 {
			live = append(live, alloc(t, h, 16))
		}
		for _, b := range live {
			h.Free(b)
		}
		most = max(most, h.limbo.bytes.Load())
	}
	if most == 0 || most > minLimbo+int64(classes[classOf[2]].bitsBytes()) {
		t.Errorf("up to %d bytes in limbo", most)
	}
	h.Trim()
	if h.limbo.bytes.Load() != 0 || h.limbo.full.Load() {
		t.Errorf("%d bytes in limbo after Trim", h.limbo.bytes.Load())
	}
}

// The statuses of a freed span stay where they are while an entry may point to
// them: until a drain, and not less.
func TestStatesStayInLimboUntilADrain(t *testing.T) {
	h := newHeap(t, Options{})
	var live [][]byte
	for range 5000 {
		live = append(live, alloc(t, h, 100))
	}
	for _, b := range live {
		h.Free(b)
	}
	_, e := entryOf(live[0])
	goHome(h)
	if h.limbo.bytes.Load() == 0 || *statusAt(e.status) != inLimbo {
		t.Fatalf("%d bytes in limbo, state %#x", h.limbo.bytes.Load(), *statusAt(e.status))
	}
	for range 20000 { // takes whatever metadata is free
		alloc(t, h, 8)
	}
	if *statusAt(e.status) != inLimbo {
		t.Errorf("the state of a freed span's block became %#x", *statusAt(e.status))
	}
	h.Trim()
	if h.limbo.bytes.Load() != 0 {
		t.Errorf("%d bytes in limbo after Trim", h.limbo.bytes.Load())
	}
}

// Where nothing but limbo is left to give back, a drain is worth its cost.
func TestLimboIsWorthADrain(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 1 << 20})
	h.Free(alloc(t, h, 100))
	goHome(h)
	if n := h.count(); n.cached > 0 || h.limbo.bytes.Load() == 0 || n.empty != int(h.limbo.bytes.Load()) {
		t.Fatalf("%d bytes in limbo: %+v", h.limbo.bytes.Load(), n)
	}
	if !h.worthADrain() {
		t.Error("a refused request would not drain the heap")
	}
}

// liveByASecondEntry returns a block of its span that is live, and one that came
// home by one entry and was then allocated from the other, filled with 5.
func liveByASecondEntry(t *testing.T, h *Heap, size int) (keep, b []byte) {
	t.Helper()
	keep, b = alloc(t, h, size), alloc(t, h, size)
	_, e := entryOf(b)
	h.Free(b)
	goHome(h)
	if was := e.claim(size); was < freeZero {
		t.Fatal("the block is not free")
	}
	fill(b, 5)
	return keep, b
}

// A block that came home by one entry and is live by the other is not handed out
// again, and nobody's Alloc panics for it.
func TestLiveBlockIsNotCarvedAgain(t *testing.T) {
	h := newHeap(t, Options{})
	keep, b := liveByASecondEntry(t, h, 1000)
	class, _ := entryOf(b)
	for range classes[class].blocks {
		if o := alloc(t, h, 1000); &o[0] == &b[0] {
			t.Fatal("the block has two owners")
		}
	}
	if !allSet(b, 5) {
		t.Error("the block changed")
	}
	h.Free(b)
	h.Free(keep)
}

// A span in which every block is live is on no list, though one of them is live by
// a second entry.
func TestSpanOfLiveBlocksIsOnNoList(t *testing.T) {
	if !makesHoles {
		t.Skip("nobody looks at such a span here")
	}
	h := newHeap(t, Options{})
	const size = 30000
	var live [][]byte
	for range classes[classFor(size, 1)].blocks {
		live = append(live, alloc(t, h, size))
	}
	_, e := entryOf(live[1])
	h.Free(live[1])
	goHome(h)
	if was := e.claim(size); was < freeZero {
		t.Fatal("the block is not free")
	}
	h.Trim()
	h.check(t)
	for _, b := range live {
		h.Free(b)
	}
}

// The memory of a block that came home by one entry and is live by the other is
// not given back with that of the free ones around it.
func TestLiveBlockKeepsItsMemory(t *testing.T) {
	if !makesHoles {
		t.Skip("this system has no holes")
	}
	h := newHeap(t, Options{})
	keep, b := liveByASecondEntry(t, h, 30000)
	h.Trim()
	if !allSet(b, 5) {
		t.Error("the block changed")
	}
	h.check(t)
	h.Free(b)
	h.Free(keep)
}

// While the pages of free blocks are given back, an entry that is one too many
// finds no free block among them.
func TestNoBlockIsFreeWhileItsPagesAreGivenBack(t *testing.T) {
	if !makesHoles {
		t.Skip("this system has no holes")
	}
	h := newHeap(t, Options{})
	keep, b := alloc(t, h, 30000), alloc(t, h, 30000)
	_, e := entryOf(b)
	h.Free(b)
	goHome(h)
	looks := 0
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpDecommit {
			looks++
			if was := e.claim(30000); was >= freeZero {
				t.Errorf("the block was allocated, its state was %#x", was)
			}
		}
		return nil
	})
	h.Trim()
	restore()
	if looks == 0 {
		t.Fatal("no pages were given back")
	}
	if was := *statusAt(e.status); was != freeDirty {
		t.Errorf("the state is %#x afterwards", was)
	}
	h.Free(keep)
}

// An entry that is one too many comes home while its block is live: the block is
// counted as live all the same.
func TestLiveBlockIsCounted(t *testing.T) {
	h := newHeap(t, Options{})
	b, keep := alloc(t, h, 100), alloc(t, h, 100)
	class, e := entryOf(b)
	c := &h.central[class]
	c.mu.Lock()
	c.returnBlocks(h, []entry{e})
	c.mu.Unlock()
	if st := h.Stats(); st.Blocks != 2 {
		t.Errorf("%d blocks are live, want 2", st.Blocks)
	}
	h.Free(b)
	h.Free(keep)
}
