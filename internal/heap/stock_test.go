// Stocks: the magazines of a class.

package heap

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/test/await"
)

// magazines returns how many magazines the stocks of the class have, with blocks and without.
func (h *Heap) magazines(class uint8) (full, empty int) {
	for i := range h.stocks {
		full += int(h.stocks[i][class].full.n)
		empty += int(h.stocks[i][class].empty.n)
	}
	return full, empty
}

// Stocks keep few magazines, with blocks or without, and none after Trim. Of several groups all keep
// together what one would, also if all work is done in one.
func TestMagazinesAreBounded(t *testing.T) {
	for _, groups := range []int{1, 4} {
		t.Run(fmt.Sprint("groups=", groups), func(t *testing.T) {
			Groups(t, groups)
			groupOf = func(int) int { return 0 }
			t.Run("unlimited", func(t *testing.T) { testMagazines(t, 0, 128) })
			t.Run("limited", func(t *testing.T) { testMagazines(t, 64<<20, max(maxStock, 8)) }) // 8 KiB each
		})
	}
}

func testMagazines(t *testing.T, limit, most int) {
	h := newHeap(t, Options{MaxBytes: limit})
	class := classFor(64, 1)
	few := func(when string) {
		t.Helper()
		if full, empty := h.magazines(class); full+empty > most+max(maxEmptyMagazines, len(h.stocks)) {
			t.Fatalf("%s: %d magazines with blocks, and %d without", when, full, empty)
		}
	}
	var live [][]byte
	for range 2 { // the second time from the stock
		for range 20_000 {
			live = append(live, alloc(t, h, 64))
			few("Alloc")
		}
		for _, b := range live {
			h.Free(b)
			few("Free")
		}
		live = nil
		if full, _ := h.magazines(class); full != most {
			t.Errorf("%d magazines with blocks, want %d", full, most)
		}
	}
	caches := make([]*LocalCache, most+maxEmptyMagazines+1)
	for i := range caches {
		caches[i] = newLocalCache(h)
		b, err := caches[i].Alloc(64, 1, false)
		if err != nil {
			t.Fatal(err)
		}
		caches[i].Free(b)
	}
	for _, o := range caches {
		o.Close()
		few("Close")
	}
	h.Trim()
	if full, empty := h.magazines(class); full+empty != 0 {
		t.Errorf("after Trim %d magazines with blocks, and %d without", full, empty)
	}
}

// workIn has the exchanges that follow be a group's.
func workIn(group int) { groupOf = func(int) int { return group } }

// burst allocates blocks, and frees as many magazines of them in each of the groups.
func burst(t *testing.T, o *LocalCache, magazines int, groups ...int) {
	t.Helper()
	var live [][]byte
	for range len(groups) * magazines * maxBatch {
		live = append(live, allocIn(t, o))
	}
	for i, b := range live {
		workIn(groups[i/magazines/maxBatch])
		o.Free(b)
	}
}

// ownCache returns a cache of a heap with n groups.
func ownCache(t *testing.T, groups int) *LocalCache {
	Groups(t, groups)
	o := newLocalCache(newHeap(t, Options{}))
	t.Cleanup(o.Close)
	return o
}

func allocIn(t *testing.T, o *LocalCache) []byte {
	t.Helper()
	b, err := o.Alloc(64, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Blocks that one group has freed are allocated in another one before spans are asked, wherever they are.
func TestBlocksComeFromOtherGroups(t *testing.T) {
	o := ownCache(t, 8)
	class := classFor(64, 1)
	c := &o.heap.central[class]
	for from := range 8 {
		burst(t, o, 8, from)
		full, _ := o.heap.magazines(class)
		out := c.out
		workIn(7 - from)
		for n := full; n > 0; n, _ = o.heap.magazines(class) {
			allocIn(t, o)
		}
		if full < 4 || c.out > out {
			t.Errorf("from group %d: %d magazines; %d blocks left their spans", from, full, c.out-out)
		}
	}
}

// A stock that had magazines when a group without any looked into it is empty once it is locked.
func TestStockBecomesEmptyUnderTheLook(t *testing.T) {
	o := ownCache(t, 4)
	h, class := o.heap, classFor(64, 1)
	burst(t, o, 6, 1, 2)
	workIn(0)
	last := h.stock(class, 2).full.n
	onStock = func(s *stock, lock bool) {
		if s == h.stock(class, 1) && lock {
			s.mu.Lock()
			s.clear(h)
			s.mu.Unlock()
		}
	}
	defer func() { onStock = nil }()
	for h.stock(class, 1).full.n > 0 {
		allocIn(t, o)
	}
	if n := h.stock(class, 2).full.n; n != last-1 {
		t.Errorf("%d magazines of %d are left in the next stock", n, last)
	}
}

// A stock that had room when another one was full is full once it is locked.
func TestStockBecomesFullUnderTheLook(t *testing.T) {
	o := ownCache(t, 2)
	h, class := o.heap, classFor(64, 1)
	workIn(0)
	most := int32(h.mostMagazines(class))
	one, other := h.stock(class, 0), h.stock(class, 1)
	fills := 0
	onStock = func(s *stock, lock bool) {
		if s != other || !lock {
			return
		}
		for fills++; other.full.n < most; {
			m, err := other.newMagazine(h)
			if err == nil {
				err = h.central[class].fill(h, m)
			}
			if err != nil {
				t.Fatal(err)
			}
			other.put(h, m)
		}
	}
	defer func() { onStock = nil }()
	burst(t, o, 2*int(most), 0)
	if fills != 1 || one.full.n != most || other.full.n != most {
		t.Errorf("filled %d times; %d and %d magazines, want %d", fills, one.full.n, other.full.n, most)
	}
}

// Drains and Stats wait for whoever has a stock locked, and touch no stock of the class before.
func TestDrainsAndStatsLockAllStocks(t *testing.T) {
	for name, call := range map[string]func(h *Heap){
		"drain":  (*Heap).Trim,
		"shrink": func(h *Heap) { h.central[classFor(64, 1)].shrink(h, false) },
		"Stats":  func(h *Heap) { h.Stats() },
		"Close":  (*Heap).Close,
	} {
		t.Run(name, func(t *testing.T) {
			o := ownCache(t, 4)
			h, class := o.heap, classFor(64, 1)
			burst(t, o, 6, 0)
			h.stock(class, 3).mu.Lock()
			done := make(chan bool, 1)
			go func() { call(h); done <- true }()
			waits := await.Lock("(*Heap).lockStocks", done)
			if n := h.stock(class, 0).full.n; !waits || n == 0 {
				t.Errorf("waits: %v; %d magazines in the first stock", waits, n)
			}
			h.stock(class, 3).mu.Unlock()
			<-done
			if full, _ := h.magazines(class); full > 0 != (name == "Stats") {
				t.Errorf("%d magazines in stock afterwards", full)
			}
		})
	}
}

// A misuse is not counted as a free. A Free is.
func TestMisuseIsNotCounted(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 100)
	class, _ := entryOf(b)
	s := h.stock(class, 0)
	frees := s.frees
	if h.freeToStock(nil, class, 0, b[:99]) || s.frees != frees {
		t.Errorf("%d frees, want %d", s.frees, frees)
	}
	if !h.freeToStock(nil, class, 0, b) || s.frees != frees+1 || h.Stats().SlowFrees != frees+1 {
		t.Errorf("%d frees, of which Stats has %d, want %d", s.frees, h.Stats().SlowFrees, frees+1)
	}
}

// Groups do not write to each other's cache lines, and no class to another's.
func TestStocksHaveCacheLines(t *testing.T) {
	if unsafe.Sizeof(stock{}) != 64 {
		t.Skip("stocks are smaller in this build")
	}
	for groups := 1; groups <= 64; groups *= 2 {
		Groups(t, groups)
		if h := newHeap(t, Options{}); uintptr(unsafe.Pointer(&h.stocks[0]))%64 != 0 {
			t.Errorf("%d groups: the stocks begin at %p", groups, &h.stocks[0])
		}
	}
}

func TestGroupsOf(t *testing.T) {
	for _, tt := range []struct{ processors, groups int }{
		{1, 1}, {8, 1}, {15, 1}, // as few as share a lock well
		{16, 2}, {31, 2}, {32, 4}, {64, 8}, {96, 8}, {128, 16}, {1024, 128},
	} {
		if got := groupsOf(tt.processors); got != tt.groups {
			t.Errorf("%d processors: %d groups, want %d", tt.processors, got, tt.groups)
		}
	}
}
