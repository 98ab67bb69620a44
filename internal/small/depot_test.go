// Depots: the magazines of a class that no cache has.

package small

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/test/await"
)

var class64 uint8

func init() { class64 = ClassFor(64, 1) } // after that of class.go

// groups gives the machines of a test n groups. The exchanges that follow are of group 0.
func groups(t testing.TB, n int) {
	t.Cleanup(SetGroups(n, func(int) int { return 0 }))
}

// workIn makes the following exchanges a group's.
func workIn(group int) { groupOf = func(int) int { return group } }

// newGroups returns the only processor of a machine with n groups.
func newGroups(t testing.TB, n int) *processor {
	groups(t, n)
	return newProcessor(t)
}

// burst allocates blocks, and frees the given number of magazines of them in each of the groups.
func (p *processor) burst(t testing.TB, magazines int, groups ...int) {
	t.Helper()
	var live [][]byte
	for range len(groups) * magazines * maxBatch {
		live = append(live, p.alloc(t, 64))
	}
	for i, b := range live {
		workIn(groups[i/magazines/maxBatch])
		p.free(b)
	}
}

// Depots keep few magazines, with blocks or without, and none after Shrink. The depots of several
// groups together keep no more than one would, also if one group does all the work.
func TestMagazinesAreBounded(t *testing.T) {
	for _, n := range []int{1, 4} {
		for limit, most := range map[int]int{0: 128, 64 << 20: max(leastStocked, 8)} { // 8 KiB each
			t.Run(fmt.Sprintf("groups=%d/limit=%d", n, limit), func(t *testing.T) {
				groups(t, n)
				testMagazines(t, newMachine(t, pages.Options{MaxBytes: limit}, most+leastEmpty+1), most)
			})
		}
	}
}

func testMagazines(t *testing.T, m *machine, most int) {
	few := func(when string) {
		t.Helper()
		if stocked, empty := m.magazines(class64); stocked+empty > most+max(leastEmpty, len(m.depots)) {
			t.Fatalf("%s: %d magazines with blocks, and %d without", when, stocked, empty)
		}
	}
	for _, p := range m.processors {
		p.alloc(t, 64)
	}
	p := m.processors[0]
	var live [][]byte
	for i := range 2 { // the second time from the depots
		for range 20_000 {
			live = append(live, p.alloc(t, 64))
			few("Alloc")
		}
		if _, empty := m.magazines(class64); i == 1 && empty != most {
			t.Errorf("%d magazines without blocks, want %d for the next burst", empty, most)
		}
		for _, b := range live {
			p.free(b)
			few("Free")
		}
		live = nil
		if stocked, empty := m.magazines(class64); stocked != most || empty == 0 {
			t.Errorf("%d magazines with blocks, want %d; %d without", stocked, most, empty)
		}
	}
	for _, p := range m.processors {
		m.Flush(p.cache, 0)
		few("Flush")
	}
	m.check(t)
	m.Shrink()
	if stocked, empty := m.magazines(class64); stocked+empty != 0 {
		t.Errorf("after Shrink %d magazines with blocks, and %d without", stocked, empty)
	}
}

func TestMostMagazines(t *testing.T) {
	was := leastStocked
	t.Cleanup(func() { leastStocked = was })
	leastStocked = 4
	for _, tt := range []struct{ groups, limit, size, most int }{
		{1, 0, 64, 128}, {4, 0, 64, 32}, // as many, of 8 KiB each
		{1, 0, 1024, 32}, {4, 0, 1024, 8}, // 1 MiB of blocks
		{1, 64 << 20, 1024, 4}, {8, 64 << 20, 1024, 1}, // leastStocked, rounded up for each group
	} {
		groups(t, tt.groups)
		if got := newMachine(t, pages.Options{MaxBytes: tt.limit}, 0).mostMagazines(ClassFor(tt.size, 1)); got != tt.most {
			t.Errorf("%+v: %d", tt, got)
		}
	}
}

// All classes together have the extra room of one: a program that frees its blocks of many sizes
// keeps few of them for the next time.
func TestDepotsShareTheirRoom(t *testing.T) {
	for _, tt := range []struct {
		groups    int
		committed uintptr
		most      int
	}{{1, 1, 1 << 20}, {4, 1, 1 << 20}, {1, 128 << 20, 4 << 20}} {
		p := newGroups(t, tt.groups)
		m := p.m
		if _, err := m.below.AllocBlock(tt.committed, 1, false); err != nil {
			t.Fatal(err)
		}
		kept, sizes := 0, []int{64, 128, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10}
		for _, size := range sizes {
			var live [][]byte
			for range 1 << 20 / size {
				live = append(live, p.alloc(t, size))
			}
			for _, b := range live {
				p.free(b)
			}
		}
		least := 0
		for _, size := range sizes {
			class := ClassFor(size, 1)
			stocked, _ := m.magazines(class)
			if stocked < m.groupShare(leastStocked) {
				t.Errorf("%+v: %d magazines of %d bytes", tt, stocked, size)
			}
			bytes := int(classes[class].batch) * size
			kept += stocked * bytes
			least += tt.groups * m.groupShare(leastStocked) * bytes
		}
		if kept < tt.most || kept > tt.most+tt.most/8+least+1<<20/8 {
			t.Errorf("%+v: depots of %d bytes, and up to %d more", tt, kept, least)
		}
	}
}

// Where no depot has a magazine, each group locks its own.
func TestGroupsLockTheirOwnDepots(t *testing.T) {
	m := newGroups(t, 4).m
	for group := range 4 {
		workIn(group)
		for name, lock := range map[string]func(h *Heap, class uint8, slot int) *depot{
			"Alloc": (*Heap).lockStocked, "Free": (*Heap).lockRoomy,
		} {
			d := lock(&m.Heap, class64, 0)
			d.mu.Unlock()
			if d != m.depot(class64, group) {
				t.Errorf("%s of group %d locks another depot", name, group)
			}
		}
	}
}

// Blocks that one group has freed are allocated in another one before spans are asked, wherever
// they are.
func TestBlocksComeFromOtherGroups(t *testing.T) {
	p := newGroups(t, 8)
	c := &p.m.central[class64]
	for from := range 8 {
		p.burst(t, 8, from)
		stocked, _ := p.m.magazines(class64)
		out := c.out
		workIn(7 - from)
		for n := stocked; n > 0 && c.out <= out; n, _ = p.m.magazines(class64) {
			p.alloc(t, 64)
		}
		if stocked < 4 || c.out > out {
			t.Errorf("from group %d: %d magazines; %d blocks left their spans", from, stocked, c.out-out)
		}
	}
}

// A depot that had magazines when a group without any looked into it is empty once it is locked.
func TestDepotBecomesEmptyUnderTheLook(t *testing.T) {
	p := newGroups(t, 4)
	m := p.m
	p.burst(t, 6, 1, 2)
	workIn(0)
	one, next := m.depot(class64, 1), m.depot(class64, 2)
	last := next.stocked.n
	onDepot = func(d *depot, lock bool) {
		if d == one && lock {
			d.mu.Lock()
			d.clear(&m.Heap)
			d.mu.Unlock()
		}
	}
	defer func() { onDepot = nil }()
	for i := 0; i <= 2*maxBatch && one.stocked.n > 0; i++ { // the cache has two magazines
		p.alloc(t, 64)
	}
	if n := next.stocked.n; n != last-1 {
		t.Errorf("%d magazines of %d are left in the next depot", n, last)
	}
}

// A depot that had room when the other one had none has none itself once it is locked.
func TestDepotBecomesFullUnderTheLook(t *testing.T) {
	p := newGroups(t, 2)
	m := p.m
	most := int32(m.mostMagazines(class64))
	one, other := m.depot(class64, 0), m.depot(class64, 1)
	fills := 0
	onDepot = func(d *depot, lock bool) {
		if d != other || !lock {
			return
		}
		for fills++; other.stocked.n < most; {
			magazine, err := other.newMagazine(&m.Heap)
			if err == nil {
				err = m.central[class64].fill(&m.Heap, magazine)
			}
			if err != nil {
				t.Fatal(err)
			}
			other.keep(&m.Heap, magazine)
		}
	}
	defer func() { onDepot = nil }()
	p.burst(t, 2*int(most), 0)
	if fills != 1 || one.stocked.n != most || other.stocked.n != most {
		t.Errorf("filled %d times; %d and %d magazines, want %d", fills, one.stocked.n, other.stocked.n, most)
	}
}

// Drains, Close and counts wait for whoever has a depot locked, and touch no depot of the class
// before. A tick waits too.
func TestDrainsAndCountsLockAllDepots(t *testing.T) {
	for name, tt := range map[string]struct {
		call  func(m *machine)
		locks string
		keeps bool
	}{
		"Shrink":  {(*machine).trim, "(*Heap).lockDepots", false},
		"shrink":  {func(m *machine) { m.shrink(class64, false) }, "(*Heap).lockDepots", false},
		"Close":   {(*machine).close, "(*Heap).lockDepots", false},
		"Holding": {func(m *machine) { m.Holding(class64, 0) }, "(*Heap).lockDepots", true},
		"Tick":    {func(m *machine) { m.Tick() }, "(*depot).tick", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newGroups(t, 4)
			m := p.m
			p.burst(t, 6, 0, 2) // so nothing is in the last group
			m.Flush(p.cache, 0)
			m.depot(class64, 3).mu.Lock()
			done := make(chan bool, 1)
			go func() { tt.call(m); done <- true }()
			waits := await.Lock(tt.locks, done)
			if n := m.depot(class64, 0).stocked.n; !waits || n == 0 {
				t.Errorf("waits: %v; %d magazines in the first depot", waits, n)
			}
			m.depot(class64, 3).mu.Unlock()
			<-done
			if stocked, empty := m.magazines(class64); stocked > 0 != tt.keeps || empty > 0 && !tt.keeps {
				t.Errorf("%d magazines in depots afterwards, and %d without blocks", stocked, empty)
			}
		})
	}
}

// While a class is counted, no block moves between a depot and the spans.
func TestHoldingKeepsDepotsLocked(t *testing.T) {
	m := newGroups(t, 4).m
	c, last := &m.central[class64], m.depot(class64, 3)
	c.mu.Lock()
	done := make(chan bool, 1)
	go func() { m.Holding(class64, 0); done <- true }()
	if !await.Lock("(*Heap).Holding", done) {
		t.Error("Holding does not wait for the spans")
	}
	if last.mu.TryLock() {
		t.Error("a depot is not locked meanwhile")
		last.mu.Unlock()
	}
	c.mu.Unlock()
	<-done
}

// Calls of all groups are counted. A misuse is not counted as a free.
func TestCallsOfAllGroupsAreCounted(t *testing.T) {
	p := newGroups(t, 2)
	b := p.alloc(t, 100)
	class, _ := entryOf(b)
	wrong := p.freeToDepot(b[:99])
	if n := p.m.Holding(class, 0); wrong || n.Allocs != 1 || n.Frees != 0 {
		t.Errorf("wrong size freed: %v; %d allocations and %d frees counted", wrong, n.Allocs, n.Frees)
	}
	workIn(1)
	if right := p.freeToDepot(b); !right || p.m.Holding(class, 0).Frees != 1 {
		t.Errorf("freed: %v; %d frees counted", right, p.m.Holding(class, 0).Frees)
	}
}

// Groups do not write to each other's cache lines, and no class to another's.
func TestDepotsHaveCacheLines(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("depots are smaller with words of 32 bits")
	}
	for n := 1; n <= 64; n *= 2 {
		groups(t, n)
		if m := newMachine(t, pages.Options{}, 0); unsafe.Sizeof(depot{}) != 64 || uintptr(unsafe.Pointer(&m.depots[0]))%64 != 0 {
			t.Errorf("%d groups: depots of %d bytes begin at %p", n, unsafe.Sizeof(depot{}), &m.depots[0])
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

// A class that moves blocks keeps its magazines at a tick, except for those that no cache has taken
// since the last one. A class at rest returns all of them, and rests again after it has moved.
func TestTicksReturnWhatNobodyTakes(t *testing.T) {
	p := newGroups(t, 1)
	m, d := p.m, p.m.depot(class64, 0)
	c := &m.central[class64]
	live := make([][]byte, 5000)
	allocAll := func() {
		for i := range live {
			live[i] = p.alloc(t, 64)
		}
	}
	freeAll := func() {
		for _, b := range live {
			p.free(b)
		}
	}
	rest := func() {
		t.Helper()
		m.Tick()
		if m.Tick() || !c.rested || d.stocked.n != 0 || d.empty.n != 0 {
			t.Errorf("at rest: %v; %d magazines with blocks, and %d without", c.rested, d.stocked.n, d.empty.n)
		}
	}
	for range 2 {
		allocAll()
		freeAll()
		had := d.stocked.n
		if !m.Tick() || had == 0 || d.stocked.n != had {
			t.Errorf("%d magazines, and %d after a tick in which the class moved blocks", had, d.stocked.n)
		}
		m.Flush(p.cache, 0)
		p.free(p.alloc(t, 64)) // takes a magazine from the depot, and leaves the others there
		if !m.Tick() || d.stocked.n != 0 {
			t.Errorf("%d magazines after a tick in which none of them was taken", d.stocked.n)
		}
		rest()
	}
	allocAll()
	rest()
	freeAll()
	allocAll() // from the depot, which leaves empty magazines
	rest()
	freeAll()
}
