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
	caches := newProcessors(h, 8)
	for _, o := range caches {
		allocIn(t, o)
	}
	o := caches[0]
	var live [][]byte
	for i := range 2 { // the second time from the stock
		for range 20_000 {
			live = append(live, allocIn(t, o))
			few("Alloc")
		}
		if _, empty := h.magazines(class); i == 1 && empty != most {
			t.Errorf("%d magazines without blocks, want %d for the next burst", empty, most)
		}
		for _, b := range live {
			o.Free(b)
			few("Free")
		}
		live = nil
		if full, empty := h.magazines(class); full != most || empty == 0 {
			t.Errorf("%d magazines with blocks, want %d; %d without", full, most, empty)
		}
	}
	for _, o := range caches {
		o.Close()
		few("Close")
	}
	h.check(t)
	h.Trim()
	if full, empty := h.magazines(class); full+empty != 0 {
		t.Errorf("after Trim %d magazines with blocks, and %d without", full, empty)
	}
}

func TestMostMagazines(t *testing.T) {
	was := maxStock
	t.Cleanup(func() { maxStock = was })
	maxStock = 4
	for _, tt := range []struct{ groups, limit, size, most int }{
		{1, 0, 64, 128}, {4, 0, 64, 32}, // as many, of 8 KiB each
		{1, 0, 1024, 32}, {4, 0, 1024, 8}, // 1 MiB of blocks
		{1, 64 << 20, 1024, 4}, {8, 64 << 20, 1024, 1}, // maxStock, rounded up for each group
	} {
		Groups(t, tt.groups)
		if got := newHeap(t, Options{MaxBytes: tt.limit}).mostMagazines(classFor(tt.size, 1)); got != tt.most {
			t.Errorf("%+v: %d", tt, got)
		}
	}
}

// Classes together have the burst of one: a program that frees what it has of many sizes keeps few
// of these blocks for the next time.
func TestStocksShareTheirRoom(t *testing.T) {
	for _, tt := range []struct{ groups, committed, most int }{{1, 0, 1 << 20}, {4, 0, 1 << 20}, {1, 128 << 20, 4 << 20}} {
		Groups(t, tt.groups)
		h := newHeap(t, Options{})
		o := newProcessor(h)
		large := allocOn(t, o, max(tt.committed, 1), 1, false)
		stocked, sizes := 0, []int{64, 128, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10}
		for _, size := range sizes {
			var live [][]byte
			for range 1 << 20 / size {
				live = append(live, allocOn(t, o, size, 1, false))
			}
			for _, b := range live {
				o.Free(b)
			}
		}
		least := 0
		for _, size := range sizes {
			class := classFor(size, 1)
			full, _ := h.magazines(class)
			if full < h.groupsPart(maxStock) {
				t.Errorf("%+v: %d magazines of %d bytes", tt, full, size)
			}
			bytes := int(classes[class].batch) * size
			stocked += full * bytes
			least += tt.groups * h.groupsPart(maxStock) * bytes
		}
		if stocked < tt.most || stocked > tt.most+tt.most/8+least+1<<20/8 {
			t.Errorf("%+v: stocks of %d bytes, and up to %d more", tt, stocked, least)
		}
		o.Free(large)
		h.check(t)
		o.Close()
	}
}

// workIn has the exchanges that follow be a group's.
func workIn(group int) { groupOf = func(int) int { return group } }

// burst allocates blocks, and frees as many magazines of them in each of the groups.
func burst(t *testing.T, o *processor, magazines int, groups ...int) {
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
func ownProcessor(t *testing.T, groups int) *processor {
	Groups(t, groups)
	o := newProcessor(newHeap(t, Options{}))
	t.Cleanup(o.Close)
	return o
}

func allocIn(t *testing.T, o *processor) []byte {
	t.Helper()
	b, err := o.Alloc(64, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Where no stock has a magazine, each group locks its own.
func TestGroupsLockTheirOwnStocks(t *testing.T) {
	h, class := ownProcessor(t, 4).h, classFor(64, 1)
	for group := range 4 {
		workIn(group)
		for name, lock := range map[string]func(h *Heap, class uint8, slot int) *stock{
			"Alloc": (*Heap).lockFull, "Free": (*Heap).lockRoomy,
		} {
			s := lock(h, class, 0)
			s.mu.Unlock()
			if s != h.stock(class, group) {
				t.Errorf("%s of group %d locks another stock", name, group)
			}
		}
	}
}

// Blocks that one group has freed are allocated in another one before spans are asked, wherever they are.
func TestBlocksComeFromOtherGroups(t *testing.T) {
	o := ownProcessor(t, 8)
	class := classFor(64, 1)
	c := &o.h.central[class]
	for from := range 8 {
		burst(t, o, 8, from)
		full, _ := o.h.magazines(class)
		out := c.out
		workIn(7 - from)
		for n := full; n > 0 && c.out <= out; n, _ = o.h.magazines(class) {
			allocIn(t, o)
		}
		if full < 4 || c.out > out {
			t.Errorf("from group %d: %d magazines; %d blocks left their spans", from, full, c.out-out)
		}
	}
}

// A stock that had magazines when a group without any looked into it is empty once it is locked.
func TestStockBecomesEmptyUnderTheLook(t *testing.T) {
	o := ownProcessor(t, 4)
	h, class := o.h, classFor(64, 1)
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
	for i := 0; i <= 2*maxBatch && h.stock(class, 1).full.n > 0; i++ { // the cache has two magazines
		allocIn(t, o)
	}
	if n := h.stock(class, 2).full.n; n != last-1 {
		t.Errorf("%d magazines of %d are left in the next stock", n, last)
	}
}

// A stock that had room when another one was full is full once it is locked.
func TestStockBecomesFullUnderTheLook(t *testing.T) {
	o := ownProcessor(t, 2)
	h, class := o.h, classFor(64, 1)
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

// Drains and Stats wait for whoever has a stock locked, and touch no stock of the class before. A tick
// waits too.
func TestDrainsAndStatsLockAllStocks(t *testing.T) {
	for name, tt := range map[string]struct {
		call  func(h *Heap)
		locks string
		keeps bool
	}{
		"drain":  {(*Heap).Trim, "(*Heap).lockStocks", false},
		"shrink": {func(h *Heap) { h.central[classFor(64, 1)].shrink(h, false) }, "(*Heap).lockStocks", false},
		"Close":  {(*Heap).Close, "(*Heap).lockStocks", false},
		"Stats":  {func(h *Heap) { h.Stats() }, "(*Heap).lockStocks", true},
		"tick":   {(*Heap).Tick, "(*stock).tick", true},
	} {
		t.Run(name, func(t *testing.T) {
			o := ownProcessor(t, 4)
			h, class := o.h, classFor(64, 1)
			workIn(0)
			burst(t, o, 6, 0, 2) // so nothing is in the last group
			h.stock(class, 3).mu.Lock()
			done := make(chan bool, 1)
			go func() { tt.call(h); done <- true }()
			waits := await.Lock(tt.locks, done)
			if n := h.stock(class, 0).full.n; !waits || n == 0 {
				t.Errorf("waits: %v; %d magazines in the first stock", waits, n)
			}
			h.stock(class, 3).mu.Unlock()
			<-done
			if full, empty := h.magazines(class); full > 0 != tt.keeps || empty > 0 && !tt.keeps {
				t.Errorf("%d magazines in stock afterwards, and %d without blocks", full, empty)
			}
		})
	}
}

// While Stats counts, no block moves between a stock and the spans.
func TestStatsKeepsStocksLocked(t *testing.T) {
	o := ownProcessor(t, 4)
	h, class := o.h, classFor(64, 1)
	c, last := &h.central[class], h.stock(class, 3)
	c.mu.Lock()
	done := make(chan bool, 1)
	go func() { h.Stats(); done <- true }()
	waits := await.Lock("(*central).holding", done)
	if !waits {
		t.Error("Stats does not wait for the spans")
	}
	if last.mu.TryLock() {
		t.Error("a stock is not locked meanwhile")
		last.mu.Unlock()
	}
	c.mu.Unlock()
	<-done
}

// Calls of all groups are counted. A misuse is not counted as a free.
func TestCallsOfAllGroupsAreCounted(t *testing.T) {
	Groups(t, 2)
	workIn(0)
	h := newHeap(t, Options{})
	b := alloc(t, h, 100)
	class, _ := entryOf(b)
	wrong := h.freeToStock(class, 0, b[:99])
	if st := h.Stats(); wrong || st.SlowAllocs != 1 || st.SlowFrees != 0 {
		t.Errorf("wrong size freed: %v; %d allocations and %d frees counted", wrong, st.SlowAllocs, st.SlowFrees)
	}
	if right := h.freeToStock(class, 0, b); !right || h.Stats().SlowFrees != 1 {
		t.Errorf("freed: %v; %d frees counted", right, h.Stats().SlowFrees)
	}
}

// Groups do not write to each other's cache lines, and no class to another's.
func TestStocksHaveCacheLines(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("stocks are smaller with words of 32 bits")
	}
	for groups := 1; groups <= 64; groups *= 2 {
		Groups(t, groups)
		if h := newHeap(t, Options{}); unsafe.Sizeof(stock{}) != 64 || uintptr(unsafe.Pointer(&h.stocks[0]))%64 != 0 {
			t.Errorf("%d groups: stocks of %d bytes begin at %p", groups, unsafe.Sizeof(stock{}), &h.stocks[0])
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
