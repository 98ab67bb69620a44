package hashmap

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/hash"
)

// A crafted map has hashes of the test's choice: the hash of a key is the key.
func newCrafted(t *testing.T) *Map[uint64, uint64] {
	m := New[uint64, uint64](alloctest.New(t), nil)
	t.Cleanup(m.Close)
	m.short = false // so that growth asks hashAt
	m.hashAt = func(key unsafePointer) uint64 { return *(*uint64)(key) }
	return m
}

func putCrafted(t *testing.T, m *Map[uint64, uint64], h uint64) {
	t.Helper()
	at, err := m.insert(h)
	if err != nil {
		t.Fatal(err)
	}
	*(*uint64)(at.key), *valueIn[uint64, uint64](at.key, at.slot) = h, ^h
}

// Entries that had passed a full group are in it after a split that has made room there.
func TestEntriesComeHome(t *testing.T) {
	m := newCrafted(t)
	if err := m.Grow(600); err != nil {
		t.Fatal(err)
	}
	const next = 1 << 63 // the bit that divides a first table
	for tag := range uint64(groupSlots) {
		putCrafted(t, m, next|tag<<tagShift) // all home to group 0
	}
	for tag := range uint64(groupSlots) {
		putCrafted(t, m, tag<<tagShift) // which these pass
	}
	from, to := m.span(0)
	if m.tables != 1 || to-from != 2 || *m.tableOf(0).overflow(0) == 0 {
		t.Fatalf("%d tables, the first at %d references", m.tables, to-from)
	}
	moved := m.moved
	if err := m.split(m.tableOf(0), from, to, m.limit(next)); err != nil {
		t.Fatal(err)
	}
	mustBeWhole(t, m)
	for _, h := range []uint64{0, next} {
		home := m.tableOf(h)
		if n := bits.OnesCount64(home.full(0)); n != groupSlots || *home.overflow(0) != 0 {
			t.Errorf("%d entries at home, of %d, and the overflow bits %x", n, groupSlots, *home.overflow(0))
		}
	}
	if n := m.moved - moved; n != 2*groupSlots {
		t.Errorf("%d entries moved, want %d", n, 2*groupSlots)
	}
}

// A split leaves entries in the quarter that they prefer, if it has room there now.
func TestSplitMovesToQuarters(t *testing.T) {
	m := newCrafted(t)
	succeed(m.Grow(600))
	const next = 1 << 63
	for _, bit := range []uint64{0, next, next} { // the first fill the quarter
		for tag := range uint64(quarterSlots) {
			putCrafted(t, m, bit|tag<<tagShift|1<<quarterShift)
		}
	}
	from, to := m.span(0)
	succeed(m.split(m.tableOf(0), from, to, m.tableOf(0).class()))
	mustBeWhole(t, m)
	for h, want := range map[uint64]int{0: quarterSlots, next: 2 * quarterSlots} {
		entries := m.tableOf(h).full(0)
		if n := bits.OnesCount64(entries); n != want || entries&quarterSet(1) != quarterSet(1) {
			t.Errorf("%d entries in slots %x, want %d, also in %x", n, entries, want, quarterSet(1))
		}
	}
}

// sidesOf has the same results for words as for all keys.
func TestSidesOfWords(t *testing.T) {
	m := New[uint64, uint64](alloctest.New(t), nil)
	defer m.Close()
	var seen sides
	for k := range uint64(20_000) {
		succeed(m.Put(k, k))
	}
	m.eachTable(func(tb table) {
		for i := range tb.groups() {
			got := m.sidesOf(tb, i, 50)
			m.short = false
			want := m.sidesOf(tb, i, 50)
			m.short = true
			if got != want {
				t.Fatalf("group %d: %x, want %x", i, got, want)
			}
			seen = sides{seen.ones | got.ones, seen.away | got.away, seen.astray | got.astray}
		}
	})
	if seen != (sides{allSlots, allSlots, allSlots}) {
		t.Errorf("seen: %x", seen)
	}
}

// Each split of the table for most hashes parts one entry from all others. The directory
// must not double for each of them.
func TestDirectoryOfSkewedHashes(t *testing.T) {
	m := newCrafted(t)
	const levels = 18
	for i := range uint64(levels) {
		putCrafted(t, m, 1<<(63-i)) // in the first groups, where divides looks
	}
	for i := range uint64(4000) {
		putCrafted(t, m, i*0x9E3779B9&0xFFFFFFFF|i%128<<tagShift)
	}
	mustBeWhole(t, m)
	if m.Len() != levels+4000 || m.tables < 5 {
		t.Errorf("%d entries in %d tables", m.Len(), m.tables)
	}
	if n := 1 << m.depth(); n > maxSparse*(m.tables+32) || n >= 1<<levels {
		t.Errorf("%d references of %d tables", n, m.tables)
	}
}

// A map of many tables with reserved room takes no more memory than one that Puts grow, and few of
// its Puts grow a table. If it had entries before, it takes a quarter more at most.
func TestGrowTakesNoMoreThanPuts(t *testing.T) {
	type value [3]uint64
	h := freehold.NewHeap(nil)
	defer h.Close()
	for n := 10_000; n <= 200_000; n = n*7/5 + 1 {
		for _, before := range []int{0, n / 2} {
			most := 4 + min(before, 1) // quarters
			put, grown := New[int, value](h, nil), New[int, value](h, nil)
			put.hash.seed = hash.SeedFrom(rand.New(rand.NewPCG(1, 1)).Uint64) // one map in 400 grows more tables
			grown.hash.seed = put.hash.seed
			for k := range n {
				succeed(put.Put(k, value{}))
				if k < before {
					succeed(grown.Put(k, value{}))
				}
			}
			succeed(grown.Grow(n - before))
			moved := grown.Stats().Moved
			for k := before; k < n; k++ {
				succeed(grown.Put(k, value{}))
			}
			mustBeWhole(t, subject[int, value](grown))
			if got, want := grown.Stats(), put.Stats(); 4*got.Reserved > most*want.Reserved || got.Moved-moved > n/20 {
				t.Errorf("%d entries after %d: %d bytes and %d moves with Grow, %d bytes with Put", n, before, got.Reserved, got.Moved-moved, want.Reserved)
			}
			put.Close()
			grown.Close()
		}
	}
}

// A Grow of a map without memory leaves it without any, at whichever allocation it fails, also with
// huge pages.
func TestGrowWithoutMemoryTakesNone(t *testing.T) {
	a := &switched{Allocator: alloctest.New(t)}
	for _, open := range []maker[uint64, uint64]{makeMap[uint64, uint64], withHuge(makeMap[uint64, uint64], obey)} {
		m := open(a, 0)
		defer m.Close()
		for n, failed := 0, true; failed; n++ {
			a.failing = alloctest.FailAfter(a.Allocator, n)
			failed = m.Grow(5000) != nil
			a.failing = nil
			if failed && reserved(m) != 0 {
				t.Fatalf("%d bytes after a failure of allocation %d", reserved(m), n)
			}
			mustBeWhole(t, m)
		}
		succeed(m.Put(1, 1))
	}
}

// A split makes room for NaNs, although their hashes have other bits at each call.
func TestSplitOfNaNs(t *testing.T) {
	m := newCrafted(t)
	m.hash.kind = otherKeys
	const n = 100
	for i := range uint64(n) {
		putCrafted(t, m, i<<tagShift)
	}
	calls := uint64(0)
	m.hashAt = func(unsafePointer) uint64 {
		calls++
		return calls | calls/n<<63 // none of the first n hashes has the bit that divides the table
	}
	from, to := m.span(0)
	if err := m.split(m.tableOf(0), from, to, 0); err != nil {
		t.Fatal(err)
	}
	mustBeWhole(t, m)
}

// A table that is rebuilt in place moves entries. A loop in it goes on in a copy.
func TestLoopBesideARebuild(t *testing.T) {
	m := newCrafted(t)
	succeed(m.Grow(600))
	first := m.tableOf(0)
	groups := uint64(first.groups())
	home := func(group, tag uint64) uint64 { return (group<<groupShift+groups-1)/groups | tag<<tagShift }
	fill := func(group, entries uint64) {
		for tag := range entries {
			putCrafted(t, m, home(group, tag))
		}
	}
	for group := range uint64(8) {
		fill(group, groupSlots)
	}
	fill(8, (1+maxPasses)*groupSlots) // up to group 15
	fill(16, groupSlots)
	for tag := range uint64(groupSlots) { // group 8 gets room
		h := home(8, tag)
		at, _ := find[uint64, uint64](&m.core, &h, h)
		m.remove(first, at, h)
		m.len--
	}
	seen, moved := map[uint64]int{}, m.moved
	for h := range m.All() {
		if len(seen) == 0 {
			putCrafted(t, m, home(9, 0)) // groups 9 to 16 are full
			if m.tableOf(0) != first || m.moved == moved || !m.cursors.detached {
				t.Errorf("the first table is in place: %t, %d entries moved, the loop has a copy: %t", m.tableOf(0) == first, m.moved-moved, m.cursors.detached)
			}
		}
		seen[h]++
	}
	for h, n := range seen {
		if n != 1 {
			t.Errorf("the loop yields %#x %d times", h, n)
		}
	}
	if len(seen) != m.len-1 {
		t.Errorf("the loop yields %d of %d entries", len(seen), m.len-1)
	}
	mustBeWhole(t, m)
}

// A split helps only if the next bit of the hashes differs.
func TestDivides(t *testing.T) {
	for name, test := range map[string]struct {
		hashes []uint64
		want   bool
	}{
		"zeros": {[]uint64{0, 1}, false}, "ones": {[]uint64{1 << 63, 1<<63 + 1}, false}, "both": {[]uint64{0, 1 << 63}, true},
	} {
		m := newCrafted(t)
		for _, h := range test.hashes {
			putCrafted(t, m, h)
		}
		if from, to := m.span(0); m.divides(m.tableOf(0), from, to) != test.want {
			t.Errorf("%s: divides is %t", name, !test.want)
		}
	}
}

// While a map has few tables, a split may part hashes of different limits. Each table is then within
// its own.
func TestFirstTablesAreWithinTheirLimits(t *testing.T) {
	m := newCrafted(t)
	for i := range uint64(8000) {
		if putCrafted(t, m, i*0x9E3779B97F4A7C15); m.tables > 8 {
			return
		}
		for ref := range uint64(1) << m.depth() {
			from, _ := m.span(ref << m.shift)
			if at := (table{*m.entry(ref)}); at.class() > m.limit(from<<m.shift) {
				t.Fatalf("%d tables, one of class %d, limit %d", m.tables, at.class(), m.limit(from<<m.shift))
			}
		}
	}
	t.Errorf("%d tables", m.tables)
}

// A table that is rebuilt leaves NaNs where they are, and sets no overflow bits for them: another
// hash would not clear these.
func TestRebuildLeavesNaNs(t *testing.T) {
	m := newCrafted(t)
	for i := range uint64(3 * groupSlots) {
		putCrafted(t, m, i<<tagShift) // home to group 0
	}
	m.hash.kind = otherKeys
	calls := uint64(0)
	m.hashAt = func(unsafePointer) uint64 { calls++; return calls << tagShift }
	at, moved := m.tableOf(0), m.moved
	m.settle(at, table{}, 0)
	for i := range at.groups() {
		if *at.overflow(i) != 0 || m.moved != moved {
			t.Errorf("group %d has overflow bits %x; %d entries moved", i, *at.overflow(i), m.moved-moved)
		}
	}
}

// An entry may pass maxPasses groups, and no more.
func TestPasses(t *testing.T) {
	m := newCrafted(t)
	succeed(m.Grow(600))
	at := m.tableOf(0)
	for i := range uint64((1 + maxPasses) * groupSlots) {
		if _, ok := at.place(&m.layout, i<<tagShift, maxPasses); !ok {
			t.Fatalf("no place for entry %d", i)
		}
	}
	if spot, ok := at.place(&m.layout, 0, maxPasses); ok {
		t.Errorf("an entry is in group %d", at.groupOf(spot.tags))
	}
}
