package hashmap

import (
	"math/bits"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
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
