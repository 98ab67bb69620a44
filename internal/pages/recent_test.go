// Recent runs: what they are used for, and when they are joined.

package pages

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

// blocksOf allocates n blocks of that many pages, neighbours in that order.
func blocksOf(t *testing.T, h *testHeap, n, pages int) (all [][]byte) {
	t.Helper()
	h.Free(alloc(t, h, 4<<20)) // room for all of them in one run
	h.Trim()
	for i := range n {
		all = append(all, alloc(t, h, pages*PageBytes))
		if i > 0 && addrOf(all[i]) != addrOf(all[i-1])+uintptr(pages*PageBytes) {
			t.Fatal("the blocks are no neighbours")
		}
	}
	return all
}

func TestRecentRunIsUsedAsItIs(t *testing.T) {
	h := newHeap(t, Options{})
	all := blocksOf(t, h, 3, 8)
	h.Free(all[0])
	h.Free(all[1])
	h.check(t)
	if n := h.pages.recent.n; n != 2 {
		t.Fatalf("%d recent runs, want 2", n)
	}
	for _, want := range [][]byte{all[1], all[0]} { // the last first
		b, err := h.Alloc(7*PageBytes+1, 8, true)
		if err != nil || addrOf(b) != addrOf(want) || !allSet(b, 0) {
			t.Errorf("a block at %#x, want %#x, all zero: %v", addrOf(b), addrOf(want), err)
		}
		h.check(t)
	}
}

// Lengths that share a list are told apart.
func TestRecentRunsOfOneList(t *testing.T) {
	h := newHeap(t, Options{})
	short, _ := alloc(t, h, 10*PageBytes), alloc(t, h, PageBytes)
	long, _ := alloc(t, h, (10+recentLists)*PageBytes), alloc(t, h, PageBytes)
	h.Free(long)
	h.Free(short)
	for _, want := range [][]byte{long, short} {
		if b := alloc(t, h, len(want)); addrOf(b) != addrOf(want) {
			t.Errorf("%d pages are not those that were free", len(b)/PageBytes)
		}
		h.check(t)
	}
}

// Recent runs are joined before memory is used that no free run has, when a block grows over
// them, and before a purge.
func TestRecentRunsAreJoined(t *testing.T) {
	for name, do := range map[string]func(h *testHeap, kept []byte){
		"a longer request":   func(h *testHeap, _ []byte) { alloc(t, h, 16*PageBytes) },
		"one at a multiple":  func(h *testHeap, _ []byte) { h.Alloc(8*PageBytes, 16*PageBytes, false) },
		"a block that grows": func(h *testHeap, kept []byte) { h.Resize(kept, 17*PageBytes) },
		"a purge":            func(h *testHeap, _ []byte) { h.Trim() },
	} {
		h := newHeap(t, Options{MaxBytes: 64 << 20})
		all := blocksOf(t, h, 4, 8)
		alloc(t, h, PageBytes)
		for _, b := range all[1:] {
			h.Free(b)
		}
		before := h.pages.committed
		do(h, all[0])
		h.check(t)
		if s := SpanAt(addrOf(all[1])); s != nil && s.recent {
			t.Errorf("%s: the runs are not joined", name)
		}
		if h.pages.committed > before {
			t.Errorf("%s: %d bytes were committed while 24 pages were free", name, h.pages.committed-before)
		}
	}
}

func TestRecentRunsAreFew(t *testing.T) {
	h := newHeap(t, Options{})
	for _, b := range blocksOf(t, h, 2*maxRecent+1, 1) {
		h.Free(b)
	}
	if n := h.pages.recent.n; n == 0 || n > maxRecent {
		t.Errorf("%d recent runs, want %d at most", n, maxRecent)
	}
	h.Trim()
	if h.Free(alloc(t, h, (maxRecentPages+1)*PageBytes)); h.pages.recent.n != 0 {
		t.Error("a long run is a recent one")
	}
	h.check(t)
}

// A run that a purge works on may be taken and come back as a recent one.
func TestRecentRunUnderAPurge(t *testing.T) {
	h := newHeap(t, Options{Decay: never})
	const size = 2 * slicePages * PageBytes
	run, _ := alloc(t, h, size), alloc(t, h, PageBytes)
	h.Free(run)
	h.pages.mu.Lock()
	h.pages.settle()
	h.pages.mu.Unlock()
	slices := 0
	atEachSlice(t, h, func() {
		if slices++; slices == 1 {
			useAndFree(t, h, size)
		}
	})
	restore := refuse(vm.OpDecommit)
	h.pages.Scavenging.Lock()
	h.pages.Purge(^uintptr(0))
	h.pages.Scavenging.Unlock()
	restore()
	if slices == 0 {
		t.Error("there was nothing to purge")
	}
	h.check(t)
	if a, b := alloc(t, h, size), alloc(t, h, size); addrOf(a) == addrOf(b) {
		t.Errorf("two blocks at %#x", addrOf(a))
	}
}

// Whatever is asked of a heap, and in which order, it is in order after each call, blocks keep
// their bytes, and nothing is left at the end.
func TestRandomRuns(t *testing.T) {
	const mostPages, mostLive = 300, 100 // above maxRecentPages, and above maxRecent
	calls := 5000
	if testing.Short() {
		calls = 2000
	}
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 0))
		h := newHeap(t, Options{HugePages: seed == 2})
		var live [][]byte
		mark := func(b []byte) []byte {
			b[0], b[len(b)-1] = byte(len(b)), byte(len(b))
			return b
		}
		for range calls {
			i, size := 0, 1+r.IntN(1<<r.IntN(bits.Len(mostPages*PageBytes)))
			if len(live) > 0 {
				i = r.IntN(len(live))
			}
			switch op := r.IntN(200); {
			case op == 0:
				h.Trim()
			case op < 3:
				h.Tick()
			case op < 20 && len(live) > 0:
				if b, ok := h.Resize(live[i], size); ok {
					live[i] = mark(b)
				}
			case len(live) == mostLive || op < 100 && len(live) > 0:
				if b := live[i]; b[0] != byte(len(b)) || b[len(b)-1] != byte(len(b)) {
					t.Fatalf("a block of %d bytes has changed", len(b))
				}
				h.Free(live[i])
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
			default:
				zero := op%2 == 0
				b, err := h.Alloc(size, 1<<r.IntN(17), zero)
				if err != nil || zero && !allSet(b, 0) {
					t.Fatalf("%d bytes: %v", size, err)
				}
				live = append(live, mark(b))
			}
			h.check(t)
		}
		for _, b := range live {
			h.Free(b)
		}
		h.Trim()
		if h.check(t); h.pages.dirty != 0 || h.pages.large.Blocks != 0 {
			t.Errorf("%d pages are dirty after Trim, and %d blocks live", h.pages.dirty, h.pages.large.Blocks)
		}
	}
}
