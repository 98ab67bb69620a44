// Depots: the magazines of a class that no cache has.

package small

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/test/await"
	"github.com/freehold-go/freehold/internal/vm"
)

var class64 uint8

func init() { class64 = ClassFor(64, 1) } // after that of class.go

// withHomes gives the machines of a test n homes. The exchanges that follow are of home 0.
func withHomes(t testing.TB, n int) {
	t.Cleanup(SetHomes(n, func(int) int { return 0 }))
}

// workIn makes the following exchanges a home's.
func workIn(home int) { slotNumber = func(int) int { return home } }

// newHomes returns the only processor of a machine with n homes.
func newHomes(t testing.TB, n int) *processor {
	withHomes(t, n)
	return newProcessor(t)
}

// burst allocates blocks, and frees the given number of magazines of them in each of the homes.
func (p *processor) burst(t testing.TB, magazines int, homes ...int) {
	t.Helper()
	var live [][]byte
	for range len(homes) * magazines * maxBatch {
		live = append(live, p.alloc(t, 64))
	}
	for i, b := range live {
		workIn(homes[i/magazines/maxBatch])
		p.free(b)
	}
}

// Depots keep few magazines, with blocks or without, and none after Shrink. The depots of several
// homes together keep no more than one would, also if one home does all the work.
func TestMagazinesAreBounded(t *testing.T) {
	for _, n := range []int{1, 4} {
		for limit, most := range map[int]int{0: 128, 64 << 20: max(leastStocked, 8)} { // 8 KiB each
			t.Run(fmt.Sprintf("homes=%d/limit=%d", n, limit), func(t *testing.T) {
				withHomes(t, n)
				testMagazines(t, newMachine(t, pages.Options{MaxBytes: limit}, most+leastEmpty+1), most)
			})
		}
	}
}

func testMagazines(t *testing.T, m *machine, most int) {
	few := func(when string) {
		t.Helper()
		if stocked, empty := m.magazines(class64); stocked+empty > most+max(leastEmpty, len(m.homes)) {
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
		m.Flush(p.cache)
		few("Flush")
	}
	m.check(t)
	m.Shrink()
	if stocked, empty := m.magazines(class64); stocked+empty != 0 {
		t.Errorf("after Shrink %d magazines with blocks, and %d without", stocked, empty)
	}
}

func TestMostStocked(t *testing.T) {
	was := leastStocked
	t.Cleanup(func() { leastStocked = was })
	leastStocked = 4
	for _, tt := range []struct{ homes, limit, size, most int }{
		{1, 0, 64, 128}, {4, 0, 64, 128}, // of 8 KiB each
		{1, 0, 1024, 32}, {4, 0, 1024, 32}, // 1 MiB of blocks
		{1, 64 << 20, 1024, 4}, {8, 64 << 20, 4096, 2}, {8, 16 << 20, 1024, 1}, // leastStocked, rounded up for each home
	} {
		withHomes(t, tt.homes)
		if got := newMachine(t, pages.Options{MaxBytes: tt.limit}, 0).mostStocked(ClassFor(tt.size, 1)); got != tt.most {
			t.Errorf("%+v: %d", tt, got)
		}
	}
}

// All classes together have the extra room of one: a program that frees its blocks of many sizes
// keeps few of them for the next time.
func TestDepotsShareTheirRoom(t *testing.T) {
	for _, tt := range []struct {
		homes     int
		committed uintptr
		most      int
	}{{1, 1, 1 << 20}, {4, 1, 1 << 20}, {1, 128 << 20, 4 << 20}} {
		p := newHomes(t, tt.homes)
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
			if stocked < m.homeShare(leastStocked) {
				t.Errorf("%+v: %d magazines of %d bytes", tt, stocked, size)
			}
			bytes := int(classes[class].batch) * size
			kept += stocked * bytes
			least += tt.homes * m.homeShare(leastStocked) * bytes
		}
		if kept < tt.most || kept > tt.most+tt.most/8+least+1<<20/8 {
			t.Errorf("%+v: depots of %d bytes, and up to %d more", tt, kept, least)
		}
	}
}

// Where no depot has a magazine, each home locks its own.
func TestHomesLockTheirOwnDepots(t *testing.T) {
	m := newHomes(t, 4).m
	for home := range 4 {
		workIn(home)
		d, stocked, err := m.fetch(class64, 0)
		if err != nil || d != m.depot(class64, home) {
			t.Errorf("home %d locks another depot: %v", home, err)
		}
		d.flush(&m.Heap, stocked)
		d.mu.Unlock()
	}
}

// Blocks that one home has freed are allocated in another one before it adds a span, wherever they
// are, until they are few.
func TestBlocksComeFromOtherHomes(t *testing.T) {
	p := newHomes(t, 8)
	c := &p.m.central[class64]
	for from := range 8 {
		p.burst(t, 8, from)
		stocked, _ := p.m.magazines(class64)
		spans, n := c.spans, stocked
		workIn(7 - from)
		for n > 0 && c.spans == spans {
			p.alloc(t, 64)
			n, _ = p.m.magazines(class64)
		}
		if stocked < 4 || n*maxBatch > spans*int(classes[class64].blocks)/32 {
			t.Errorf("from home %d: %d magazines, and %d when a span was added", from, stocked, n)
		}
	}
}

// A home that would add a span takes blocks from other homes' depots if there is no memory for it.
func TestDepotsServeIfThereIsNoMemory(t *testing.T) {
	withHomes(t, 2)
	m := newMachine(t, pages.Options{}, 2)
	workIn(1)
	var live [][]byte
	for range 32 * classes[class64].blocks { // in full spans
		live = append(live, m.processors[0].alloc(t, 64))
	}
	for _, b := range live[:2*maxBatch+1] {
		m.processors[0].free(b)
	}
	workIn(0)
	if c, n := &m.central[class64], m.depot(class64, 1).stocked.n; n != 1 || !c.adds(&m.Heap, 1) {
		t.Fatalf("%d magazines are few: %v", n, c.adds(&m.Heap, 1))
	}
	defer vm.Refuse(vm.OpCommit)()
	for err := error(nil); err == nil; { // takes the free pages
		_, err = m.below.AllocBlock(pages.PageBytes, 1, false)
	}
	m.processors[1].alloc(t, 64)
}

// A home that has no blocks adopts a span of another home if half of it is free, or else borrows
// from one. While few blocks are free, it adds a span instead of borrowing, unless the heap has a
// limit.
func TestHomesAdoptAndBorrowSpans(t *testing.T) {
	blocks := int(classes[class64].blocks)
	for _, tt := range []struct {
		limit       int
		live, spans int // quarters of the span whose blocks are live; full spans besides
		home, added int
	}{
		{0, 1, 0, 1, 0}, {0, 2, 0, 1, 0},
		{0, 3, 0, 0, 0}, // borrowed
		{0, 3, 7, 0, 1}, // a quarter of one span is a 32nd of eight
		{64 << 20, 3, 7, 0, 0},
	} {
		withHomes(t, 2)
		p := newMachine(t, pages.Options{MaxBytes: tt.limit}, 1).processors[0]
		c := &p.m.central[class64]
		var b []byte
		for range tt.live*blocks/4 + blocks*tt.spans {
			b = p.alloc(t, 64)
		}
		before, s := c.spans, SpanAt(AddrOf(b))
		workIn(1)
		p.m.flush()
		b = p.alloc(t, 64)
		if got := int(s.home); got != tt.home || c.spans-before != tt.added || (SpanAt(AddrOf(b)) == s) != (tt.added == 0) {
			t.Errorf("%+v: home %d, %d spans added", tt, got, c.spans-before)
		}
	}
}

// A home adopts or borrows the last span on the list of another home, not its first, which is
// nearly full.
func TestHomesTakeTheLastSpan(t *testing.T) {
	blocks := int(classes[class64].blocks)
	for _, tt := range []struct {
		out     int // blocks out of the last span
		adopted bool
	}{{blocks / 2, true}, {blocks/2 + 1, false}} {
		m := newHomes(t, 2).m
		h, c := &m.Heap, &m.central[class64]
		m.depot(class64, 0)
		m.depot(class64, 1)
		var spans [2]*Span // the last of the list first
		taken := make([]Entry, 2*blocks)
		carved := 0
		for i, out := range []int{tt.out, blocks - 1} {
			if err := c.grow(h, 0); err != nil {
				t.Fatal(err)
			}
			spans[i] = spanPtr(c.partial(0).Head)
			carved += c.carve(spans[i], taken[carved:][:out])
		}
		adopted := c.ownOrAdopted(1)
		if (adopted != nil) != tt.adopted || adopted != nil && adopted != spans[0] || !tt.adopted && c.foreign(1) != spans[0] {
			t.Errorf("%d blocks out: adopts %p, or else borrows %p; the last is %p", tt.out, adopted, c.foreign(1), spans[0])
		}
		c.restore(h, taken[:carved])
	}
}

// If a payer has lowered the limit since, a depot frees the empty magazines that it may not keep.
func TestLowerLimitFreesEmptyMagazines(t *testing.T) {
	p := newProcessor(t)
	live := make([][]byte, 20_000)
	for range 2 { // the second time from the depot
		for i := range live {
			live[i] = p.alloc(t, 64)
		}
		_, empty := p.m.magazines(class64)
		if empty > 100 {
			p.m.below.MaxBytes = 64 << 20
		}
		for _, b := range live {
			p.free(b)
		}
	}
	if stocked, empty := p.m.magazines(class64); p.m.below.MaxBytes == 0 || stocked+empty > 20 {
		t.Errorf("limit %d: %d magazines with blocks and %d without", p.m.below.MaxBytes, stocked, empty)
	}
	p.m.check(t) // each magazine is in the depot, in the cache or free
}

// A depot that gets a magazine with blocks, and then may keep fewer without, frees one of these.
func TestStockedMagazineTakesThePlaceOfAnEmptyOne(t *testing.T) {
	p := newProcessor(t)
	h, d := &p.m.Heap, p.m.depot(class64, 0)
	full, err := d.newMagazine(h)
	if err == nil {
		err = h.central[class64].fill(h, full, 0, 0)
	}
	var empty []*magazine
	for err == nil && len(empty) < d.mostEmpty(h) {
		var m *magazine
		m, err = d.newMagazine(h)
		empty = append(empty, m)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range empty {
		d.discard(h, m)
	}
	before := int(d.empty.n)
	d.keep(h, full)
	if most := d.mostEmpty(h); most != before-1 || int(d.empty.n) != most {
		t.Errorf("%d magazines without blocks, want %d; %d before", d.empty.n, most, before)
	}
	p.m.check(t)
}

// Calls may read while others allocate: with -race too.
func TestCallsBesideOthers(t *testing.T) {
	p := newProcessor(t)
	p.alloc(t, 64)
	done := make(chan bool)
	go func() {
		p.alloc(t, 1024)
		p.alloc(t, 2048)
		done <- true
	}()
	first := p.m.Calls()
	<-done
	if n := p.m.Calls(); first < 1 || n != 3 {
		t.Errorf("%d calls, and then %d", first, n)
	}
	p.m.FreeToDepot(p, class64, p.slot, p.alloc(t, 64))
	if n := p.m.Calls(); n != 4 {
		t.Errorf("%d calls with a Free", n)
	}
}

// noCache has slots without caches.
type noCache struct{}

func (noCache) Hold() (int, *Magazines) { return 0, nil }
func (noCache) Leave(int)               {}

// Blocks of another home leave a magazine that a cache gives up: all of them alone if half of the
// sample is theirs, and with the magazine if most are and their home has no magazine.
func TestBlocksGoHome(t *testing.T) {
	for _, tt := range []struct{ foreign, has, stay, sent int }{
		{0, 0, 128, 0}, {32, 0, 128, 0}, {64, 0, 64, 0}, {64, 1, 64, 0},
		{96, 0, 0, 128}, {128, 0, 0, 128}, {128, 1, 128, 0},
	} {
		p := newHomes(t, 2)
		h, c, d, other := &p.m.Heap, &p.m.central[class64], p.m.depot(class64, 0), p.m.depot(class64, 1)
		take := func(home int) *magazine {
			m, err := d.newMagazine(h)
			if err == nil {
				err = c.grow(h, home)
			}
			if err == nil {
				err = c.fill(h, m, home, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		for range tt.has {
			other.keep(h, take(1))
		}
		m, theirs := take(0), take(1)
		c.restore(h, m.entries(uintptr(tt.foreign)))
		copy(m.entries(uintptr(tt.foreign)), theirs.entries(maxBatch))
		copy(theirs.entries(maxBatch), theirs.entries(maxBatch)[tt.foreign:])
		theirs.n -= uintptr(tt.foreign)
		d.flush(h, theirs)

		d.exchange(h, noCache{}, m)
		if stay, sent := int(d.stocked.blocks), int(other.stocked.blocks)-tt.has*maxBatch; stay != tt.stay || sent != tt.sent {
			t.Errorf("%+v: %d stay, and %d are sent", tt, stay, sent)
		}
	}
}

// A depot that had magazines when a home without any looked into it is empty once it is locked.
func TestDepotBecomesEmptyUnderTheLook(t *testing.T) {
	p := newHomes(t, 4)
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
	for i := 0; i < 5000 && one.stocked.n > 0; i++ { // past the spans of the home
		p.alloc(t, 64)
	}
	if n := next.stocked.n; n != last-1 {
		t.Errorf("%d magazines of %d are left in the next depot", n, last)
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
			p := newHomes(t, 4)
			m := p.m
			p.burst(t, 6, 0, 2) // so nothing is in the last home
			m.Flush(p.cache)
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
	m := newHomes(t, 4).m
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

// Calls of all homes are counted. A misuse is not counted as a free.
func TestCallsOfAllHomesAreCounted(t *testing.T) {
	p := newHomes(t, 2)
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

// Homes do not write to each other's cache lines, and no class to another's.
func TestDepotsHaveCacheLines(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("depots are smaller with words of 32 bits")
	}
	for n := 1; n <= 64; n *= 2 {
		withHomes(t, n)
		if d := newMachine(t, pages.Options{}, 0).depot(0, n-1); unsafe.Sizeof(*d) != 64 || uintptr(unsafe.Pointer(d))%64 != 0 {
			t.Errorf("%d homes: depots of %d bytes begin at %p", n, unsafe.Sizeof(*d), d)
		}
	}
}

// A home takes memory once a processor of it has used a depot. Ticks, drains and counts add none.
func TestHomesAreAddedOnUse(t *testing.T) {
	if size := unsafe.Sizeof(home{}); size > 7<<10 {
		t.Errorf("a home has %d bytes", size)
	}
	withHomes(t, 64)
	m := newMachine(t, pages.Options{}, 2)
	for i, p := range m.processors {
		workIn(7 * i)
		var live [][]byte
		for range 1000 {
			live = append(live, p.alloc(t, 64))
		}
		for _, b := range live {
			p.free(b)
		}
		workIn(20)
		m.Tick()
		m.trim()
		m.Holding(class64, 0)
		m.check(t)
		n := 0
		for range m.homes.all {
			n++
		}
		if n != i+1 {
			t.Errorf("%d homes after %d processors", n, i+1)
		}
	}
}

func TestHomesFor(t *testing.T) {
	for _, tt := range []struct{ processors, homes int }{
		{1, 1}, {2, 2}, {3, 4}, {8, 8}, {15, 16}, {64, 64}, {65, 64}, {1024, 64},
	} {
		if got := homesFor(tt.processors); got != tt.homes {
			t.Errorf("%d processors: %d homes, want %d", tt.processors, got, tt.homes)
		}
	}
}

// A class that moves blocks keeps its magazines at a tick, except for those that no cache has taken
// since the last one. A class at rest returns all of them, and rests again after it has moved.
func TestTicksReturnWhatNobodyTakes(t *testing.T) {
	p := newHomes(t, 1)
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
		m.Flush(p.cache)
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

// FreeToDepot reads and writes the status of the block while it holds the slot, so that no drain
// frees the status meanwhile.
func TestFreeHoldsTheSlotForTheStatus(t *testing.T) {
	p := newProcessor(t)
	b := p.alloc(t, 64)
	class, e := entryOf(b)
	s := &statusSlots{processor: p, status: StatusAt(e.Status)}
	if !p.m.FreeToDepot(s, class, p.slot, b) || s.seen[0] != 64 || s.seen[1] != FreeDirty {
		t.Errorf("the status at Hold and Leave: %#x", s.seen)
	}
}

// statusSlots notes a status at each Hold and Leave.
type statusSlots struct {
	*processor
	status *uint16
	seen   []uint16
}

func (s *statusSlots) Hold() (int, *Magazines) {
	s.seen = append(s.seen, *s.status)
	return s.processor.Hold()
}

func (s *statusSlots) Leave(slot int) {
	s.seen = append(s.seen, *s.status)
	s.processor.Leave(slot)
}
