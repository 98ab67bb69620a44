// Double frees by two goroutines at once: a block with two entries has one owner.

package small

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

// liveByASecondEntry returns two blocks of one span. b returned to the span by one entry and was
// then allocated from the other, and is filled with 5.
func (p *processor) liveByASecondEntry(t *testing.T, size int) (keep, b []byte) {
	t.Helper()
	keep, b = p.alloc(t, size), p.alloc(t, size)
	_, e := entryOf(b)
	p.free(b)
	p.m.restore()
	if was := e.claim(size); !IsFree(was) {
		t.Fatal("the block is not free")
	}
	fill(b, 5)
	return keep, b
}

// The second entry of a block that was freed twice is still in the cache when the first is
// allocated.
func TestBlockFreedTwiceIsNotAllocatedTwice(t *testing.T) {
	p := newProcessor(t)
	b := p.alloc(t, 64)
	class, e := entryOf(b)
	p.free(b)
	p.freeAgain(t, class, e)
	p.alloc(t, 64)
	for range 300 {
		if _, err := p.tryAlloc(64); errors.Is(err, errFreedTwice) {
			return
		}
	}
	t.Error("the second entry was not found")
}

// A block that was freed by mistake after the caller looked up its class is not taken for a block of
// that class, if a block of another class has its place and length now.
func TestBlockOfAnotherClassIsNotLive(t *testing.T) {
	p := newProcessor(t)
	b := p.alloc(t, 64)
	class, e := entryOf(b)
	if e := p.m.LiveEntry(class+1, b); e.Addr != 0 {
		t.Errorf("LiveEntry: %+v", e)
	}
	if p.m.FreeToDepot(p, class+1, p.slot, b) || *StatusAt(e.Status) != 64 {
		t.Errorf("the status of the block became %#x", *StatusAt(e.Status))
	}
}

// The block is a third goroutine's when its second entry returns to the span.
func TestBlockFreedTwiceStaysItsThirdOwners(t *testing.T) {
	p := newProcessor(t)
	b := p.alloc(t, 64)
	class, e := entryOf(b)
	p.free(b)
	p.freeAgain(t, class, e)
	if third := p.alloc(t, 64); AddrOf(third) != AddrOf(b) {
		t.Fatal("the block was not allocated again")
	}
	p.m.trim()
	if n := p.m.live(class); n != 1 {
		t.Errorf("%d blocks are live, want the third's", n)
	}
	p.m.check(t)
	for range 2000 {
		if c := p.alloc(t, 64); AddrOf(c) == AddrOf(b) {
			t.Fatal("the block has two owners")
		}
	}
}

// A live block beside one that was freed twice keeps its memory.
func TestBlockFreedTwiceHarmsNoOther(t *testing.T) {
	p := newProcessor(t)
	b, c := p.alloc(t, 32768), p.alloc(t, 32768)
	fill(c, 7)
	class, e := entryOf(b)
	p.free(b)
	p.freeAgain(t, class, e)
	p.m.trim()
	large, err := p.m.below.AllocBlock(200_000, 1, true)
	if err != nil || SpanAt(AddrOf(c)).Kind != pages.BlockRun || !allSet(c, 7) {
		t.Errorf("%v; a live block is in %+v, beside %+v", err, SpanAt(AddrOf(c)), large)
	}
}

// A live block keeps its span though its second entry has returned: the span is not freed, the
// block not allocated again, its memory not given back, and it may be freed.
func TestLiveBlockKeepsItsSpan(t *testing.T) {
	for _, size := range []int{100, 1000, 30000} {
		for name, before := range map[string]func(p *processor, keep []byte){
			"carved":  func(*processor, []byte) {},
			"trimmed": func(p *processor, _ []byte) { p.m.trim() },
			"alone":   func(p *processor, keep []byte) { p.free(keep); p.m.trim() },
		} {
			t.Run(fmt.Sprintf("size=%d/%s", size, name), func(t *testing.T) {
				p := newProcessor(t)
				keep, b := p.liveByASecondEntry(t, size)
				before(p, keep)
				if s := SpanAt(AddrOf(b)); s == nil || s.Kind != pages.BlockRun {
					t.Fatal("the span was freed with a live block in it")
				}
				class, _ := entryOf(b)
				for range 2 * classes[class].blocks {
					fill(p.alloc(t, size), 6)
				}
				if p.m.check(t); !allSet(b, 5) {
					t.Error("the block changed")
				}
				if !p.free(b) {
					t.Error("the block is not live")
				}
			})
		}
	}
}

// A span in which every block is live is on no list, though one of them is live by a second entry.
func TestSpanOfLiveBlocksIsOnNoList(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("nobody looks at such a span here")
	}
	p := newProcessor(t)
	const size = 30000
	var live [][]byte
	for range classes[ClassFor(size, 1)].blocks {
		live = append(live, p.alloc(t, size))
	}
	_, e := entryOf(live[1])
	p.free(live[1])
	p.m.restore()
	if was := e.claim(size); !IsFree(was) {
		t.Fatal("the block is not free")
	}
	p.m.trim()
	p.m.check(t)
}

// A second entry returns while its block is live: the block is counted as live all the same.
func TestLiveBlockIsCounted(t *testing.T) {
	p := newProcessor(t)
	b := p.alloc(t, 100)
	p.alloc(t, 100)
	class, e := entryOf(b)
	p.m.restoreEntry(class, e)
	if n := p.m.live(class); n != 2 {
		t.Errorf("%d blocks are live, want 2", n)
	}
}

// While the pages of free blocks are given back, a second entry finds no free block among them.
func TestNoBlockIsFreeWhileItsPagesAreGivenBack(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("this system has no holes")
	}
	p := newProcessor(t)
	p.alloc(t, 30000)
	b := p.alloc(t, 30000)
	_, e := entryOf(b)
	p.free(b)
	p.m.restore()
	looks := 0
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpDecommit {
			looks++
			if was := e.claim(30000); IsFree(was) {
				t.Errorf("the block was allocated, its status was %#x", was)
			}
		}
		return nil
	})
	p.m.trim()
	restore()
	if looks == 0 {
		t.Fatal("no pages were given back")
	}
	if was := *StatusAt(e.Status); was != FreeDirty {
		t.Errorf("the status is %#x afterwards", was)
	}
}

// Random programs in which some frees happen twice at once: each block has one owner, each live
// block may be freed, and an Alloc that fails says why.
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
		n := 1 << (seed % 3)
		undo := SetHomes(n, func(int) int { return r.IntN(n) })
		m := newMachine(t, pages.Options{}, 2)
		sizes := []int{8, 16, 100, 1000, 9000, 30000}[r.IntN(4):]
		var live [][]byte
		take := func() []byte {
			i := r.IntN(len(live))
			b := live[i]
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
			if !allSet(b, b[0]) {
				t.Fatalf("seed %d: a block of %d bytes changed", seed, len(b))
			}
			return b
		}
		free := func(p *processor, b []byte) {
			if !p.free(b) {
				t.Fatalf("seed %d: a live block is not", seed)
			}
		}
		for step := range 3000 {
			p := m.processors[r.IntN(2)]
			switch op := r.IntN(100); {
			case op < 48 || len(live) == 0:
				b, err := p.tryAlloc(sizes[r.IntN(len(sizes))])
				if err == nil {
					fill(b, byte(step))
					live = append(live, b)
				} else if err != errFreedTwice {
					t.Fatalf("seed %d: %v", seed, err)
				}
			case op < 96:
				b := take()
				class, e := entryOf(b)
				free(p, b)
				if op%8 == 0 {
					m.processors[r.IntN(2)].freeAgain(t, class, e)
				}
			case op < 98:
				m.Tick()
			case op < 99:
				m.trim()
			default:
				for len(live) > 0 {
					free(p, take())
				}
			}
		}
		for len(live) > 0 {
			free(m.processors[0], take())
		}
		m.trim()
		for class := range m.central {
			if c := &m.central[class]; c.spans != 0 || c.out != 0 {
				t.Fatalf("seed %d: class %d has %d spans, %d blocks out", seed, class, c.spans, c.out)
			}
		}
		m.check(t)
		m.close()
		undo()
	}
}
