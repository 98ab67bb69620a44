// Double frees by two goroutines at once: a block with two entries has one owner.

package heap

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

func entryOf(b []byte) (class uint8, e entry) {
	addr := uintptr(unsafe.Pointer(&b[0]))
	s := spanAt(addr)
	return s.class, entry{addr, s.statusOf(s.index(addr))}
}

// freeAgain is what a second goroutine does that passed Free's check at the same
// moment as the first: the entry is put into the cache of o, or of this processor if o is nil.
func freeAgain(t *testing.T, h *Heap, o *processor, class uint8, e entry) {
	t.Helper()
	s := h.stock(class, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.newMagazine(h)
	if err != nil {
		t.Fatal(err)
	}
	m.push(e)
	if o == nil {
		s.exchange(h, m)
	} else {
		o.slow(func() { s.exchange(h, m) })
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

// Two goroutines that free one block at the same moment may both get past the
// check; the block is still not handed out twice.
func TestBlockFreedTwiceAtOnceIsNotHandedOutTwice(t *testing.T) {
	h := newHeap(t, Options{})
	o := newProcessor(h) // whose place is known
	defer o.Close()
	b, _ := o.Alloc(64, 1, false)
	class, e := entryOf(b)
	o.Free(b)
	freeAgain(t, h, o, class, e)
	first, _ := o.Alloc(64, 1, false)
	got := panicOf(func() {
		for range 300 {
			o.Alloc(64, 1, false)
		}
	})
	if !strings.Contains(got, "freed by two goroutines at once") {
		t.Errorf("panic %q", got)
	}
	h.Free(first)
}

// Two goroutines freed one block at once, a third has it now, and the second
// entry goes home.
func TestBlockFreedTwiceAtOnceStaysItsThirdOwners(t *testing.T) {
	h := newHeap(t, Options{})
	o := newProcessor(h) // whose place is known
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

// A block that came home by one entry and was allocated by the other is live: its
// span neither hands it out again nor goes while it is.
func TestLiveBlockKeepsItsSpan(t *testing.T) {
	h := newHeap(t, Options{})
	o := newProcessor(h)
	defer o.Close()
	b, _ := o.Alloc(1000, 1, false)
	class, e := entryOf(b)
	o.Free(b)
	goHome(h) // frees the span, but for an entry that is out twice:
	b, _ = o.Alloc(1000, 1, false)
	class, e = entryOf(b)
	o.Free(b)
	o.cache().tops[class] -= entryBytes
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
	if s := spanAt(e.addr); s == nil || s.Kind != pages.BlockRun {
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
	if !vm.HolesReadZero {
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
	if !vm.HolesReadZero {
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
	if !vm.HolesReadZero {
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
		Groups(t, 1<<(seed%3))
		h := newHeap(t, Options{})
		o := newProcessor(h)
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
				twice := n%8 == 0 && s.Kind == pages.BlockRun
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
