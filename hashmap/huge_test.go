package hashmap

import (
	"errors"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/vm"
)

// hugeOf returns the memory for full-grown tables of a Map or a Shared.
func hugeOf[K comparable, V any](m subject[K, V]) *hugeTables {
	if m, ok := m.(*Map[K, V]); ok {
		return &m.huge
	}
	return &m.(*Shared[K, V]).huge
}

// withHuge makes maps of small tables, which are in pages of four to eight of them from the
// second one on.
func withHuge[K comparable, V any](open maker[K, V], advise func(b []byte, a vm.Advice) error) maker[K, V] {
	return func(parent freehold.Allocator, narrow uint64) subject[K, V] {
		m := open(parent, narrow)
		h := hugeOf(m)
		switch m := m.(type) {
		case *Map[K, V]:
			m.setLeastLimits()
			h.size = m.tableBytes(m.limit(0))
		case *Shared[K, V]:
			m.setLeastLimits()
			h.size = m.sharedBytes(m.limit(0))
		}
		h.page, h.from, h.advise = 4<<bits.Len(uint(h.size-1)), 2*h.size, advise
		return m
	}
}

// setLeastLimits lets tables grow to minGroups.
func (l *layout) setLeastLimits() {
	l.limits = [8]uint8{}
	l.setLimits(0)
}

func obey([]byte, vm.Advice) error { return nil }

// tablesOf returns how many full-grown tables m has, and how many of them are in huge pages.
func tablesOf(m subject[uint64, uint64]) (full, huge int) {
	h := hugeOf(m)
	count := func(table uintptr, largest bool) {
		if largest {
			full++
			if h.has(table) {
				huge++
			}
		}
	}
	switch m := m.(type) {
	case *Map[uint64, uint64]:
		m.eachTable(func(t table) { count(uintptr(t.base()), t.class() >= uintptr(m.limits[7])) })
	case *Shared[uint64, uint64]:
		m.each(func(t table) { count(uintptr(t.base()), t.class() >= uintptr(m.limits[7])) })
	}
	return full, huge
}

// put puts the keys [from, to). It waits for each page that is needed, if patient is set.
func put(t *testing.T, m subject[uint64, uint64], from, to int, patient bool) {
	t.Helper()
	for i := from; i < to; i++ {
		if patient {
			hugeOf(m).needed().wait()
		}
		if err := m.Put(uint64(i), uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range to {
		if v, ok := m.Get(uint64(i)); !ok || v != uint64(i) {
			t.Fatalf("Get(%d) = %d, %t", i, v, ok)
		}
	}
	mustBeWhole(t, m)
}

func TestTablesOfALargeMapAreInHugePages(t *testing.T) {
	both(t, func(t *testing.T, open maker[uint64, uint64]) {
		memory := freehold.NewTagged(alloctest.New(t), "")
		m := withHuge(open, obey)(memory, 0)
		put(t, m, 0, 13_000, true)
		full, huge := tablesOf(m)
		if full < 200 || huge < full*3/4 {
			t.Errorf("%d of %d tables are in huge pages", huge, full)
		}
		if h := hugeOf(m); len(h.blocks) < 20 || len(h.blocks)*int(h.page) > h.bytes*3/4 {
			t.Errorf("%d blocks of %d bytes", len(h.blocks), h.bytes)
		}
		if n := memory.Counts().LiveBytes; reserved(m) != n {
			t.Errorf("Reserved is %d, and the parent has %d", reserved(m), n)
		}
		m.Close()
		if n := memory.Counts().Live; n != 0 || reserved(m) != 0 {
			t.Errorf("%d blocks after Close, and Reserved is %d", n, reserved(m))
		}
	})
}

func TestTablesOfASmallMapAreNotInHugePages(t *testing.T) {
	both(t, func(t *testing.T, open maker[uint64, uint64]) {
		m := withHuge(open, obey)(alloctest.New(t), 0)
		defer m.Close()
		h := hugeOf(m)
		h.from = hugeFrom
		put(t, m, 0, 13_000, true)
		if full, _ := tablesOf(m); full < 200 || len(h.blocks) > 0 {
			t.Errorf("%d blocks for %d tables of %d bytes", len(h.blocks), full, h.size)
		}
	})
}

// Grow waits for pages, because it need not be quick. All tables but the first are then in huge
// pages. In a Shared, so are all but those before h.from and the one that starts the first page.
func TestGrowTakesHugePages(t *testing.T) {
	both(t, func(t *testing.T, open maker[uint64, uint64]) {
		synctest.Test(t, func(t *testing.T) {
			m := withHuge(open, func(_ []byte, a vm.Advice) error {
				if a == vm.Populate {
					time.Sleep(time.Second) // until all others wait
				}
				return nil
			})(freehold.Default(), 0)
			defer m.Close()
			from, others := hugeOf(m).from, 1
			if m, ok := m.(*Shared[uint64, uint64]); ok {
				size := m.sharedBytes(2)
				others = 1 + int((from+size-1)/size)
			}
			for _, n := range []int{2_000, 12_000} { // tables of three groups, and some of four
				if err := m.Grow(n); err != nil {
					t.Fatal(err)
				}
				if full, huge := tablesOf(m); full < n/100 || huge < full-others || hugeOf(m).from != from {
					t.Errorf("Grow(%d): %d of %d tables are in huge pages; from is %d, and was %d", n, huge, full, hugeOf(m).from, from)
				}
			}
		})
	})
}

// The first table is in a huge page once it has grown to its greatest size.
func TestTableThatGrewIsInAHugePage(t *testing.T) {
	m := withHuge(makeMap[uint64, uint64], obey)(alloctest.New(t), 0).(*Map[uint64, uint64])
	defer m.Close()
	m.huge.from = 0
	m.huge.start(m.base.Parent, 0)
	m.huge.next.wait()
	for k := uint64(0); m.tables == 0 || m.tableOf(0).class() < m.limit(0); k++ {
		succeed(m.Put(k, k))
	}
	if m.tables != 1 || !m.huge.has(uintptr(m.tableOf(0).base())) {
		t.Errorf("%d tables; the first is in a huge page: %t", m.tables, m.huge.has(uintptr(m.tableOf(0).base())))
	}
}

// Tables larger than the map's, and tables beyond a sixteenth of a huge page, have none. A block gets
// its advice in this order: what is resident goes, huge pages, and then a page is populated.
func TestHugeTables(t *testing.T) {
	var h hugeTables
	if h.init(hugePage/16 + 1); h.size != 0 {
		t.Errorf("huge pages for tables of %d bytes", h.size)
	}
	h.init(hugePage / 16)
	var advice []vm.Advice
	h.from, h.advise = 0, func(_ []byte, a vm.Advice) error { advice = append(advice, a); return nil }
	parent := alloctest.New(t)
	defer h.close(parent)
	if p := h.take(parent, h.size+1, 0); p != nil || h.next != nil {
		t.Errorf("a table of %d bytes has the page %v, next %v", h.size+1, p, h.next)
	}
	h.take(parent, h.size, 0)
	h.next.wait()
	if want := []vm.Advice{vm.DontNeed, vm.HugePages, vm.Populate}; !slices.Equal(advice, want) {
		t.Errorf("advice %v, want %v", advice, want)
	}
	if h.left = (extent{0, h.size}); h.needed() != nil {
		t.Error("a table needs the next page while the current one has room for it")
	}
}

// Tables that Grow has put into huge pages split when they are full: a larger table in their place
// would leave their memory unused until Close.
func TestReservedHugeTablesSplit(t *testing.T) {
	m := withHuge(makeMap[uint64, uint64], obey)(alloctest.New(t), 0)
	defer m.Close()
	if err := m.Grow(9_500); err != nil {
		t.Fatal(err)
	}
	put(t, m, 0, 13_000, true)
	h, used := hugeOf(m), 0
	m.(*Map[uint64, uint64]).eachTable(func(at table) {
		if h.has(uintptr(at.base())) {
			used += int(m.(*Map[uint64, uint64]).tableBytes(at.class()))
		}
	})
	if used < h.bytes*13/16 {
		t.Errorf("tables have %d of the %d bytes in huge pages", used, h.bytes)
	}
}

// Nobody waits for a page but Close, since the parent may give it to others.
func TestPutDoesNotWaitForAPageAndCloseDoes(t *testing.T) {
	twoProcessors(t)
	both(t, func(t *testing.T, open maker[uint64, uint64]) {
		synctest.Test(t, func(t *testing.T) {
			resident := make(chan struct{})
			m := withHuge(open, func(_ []byte, a vm.Advice) error {
				if a == vm.Populate {
					<-resident
				}
				return nil
			})(freehold.Default(), 0)
			put(t, m, 0, 2000, false)
			if full, huge := tablesOf(m); full < 40 || huge > 0 {
				t.Errorf("%d of %d tables are in huge pages, and none is resident", huge, full)
			}
			closed := false
			go func() {
				m.Close()
				closed = true
			}()
			synctest.Wait()
			if closed {
				t.Error("Close has not waited")
			}
			close(resident)
			synctest.Wait()
			if !closed {
				t.Error("Close waits")
			}
		})
	})
}

// Tables that were made while no page was resident move when they split.
func TestTablesMoveToHugePages(t *testing.T) {
	late := true
	m := withHuge(makeMap[uint64, uint64], obey)(alloctest.New(t), 0)
	defer m.Close()
	h := hugeOf(m)
	h.from = 1 << 20
	put(t, m, 0, 1000, true)
	before, _ := tablesOf(m)
	h.from = 0
	for range m.All() { // the cursor's table moves too
		if late {
			late = false
			put(t, m, 1000, 8000, true)
		}
	}
	if full, huge := tablesOf(m); before < 20 || full-huge > before/2 {
		t.Errorf("%d of %d tables are in huge pages; there were %d", huge, full, before)
	}
}

// Where there are no huge pages, a map is as before, and has no block for them.
func TestWithoutHugePages(t *testing.T) {
	for name, absent := range map[string]vm.Advice{"the system has none": vm.HugePages, "the system makes none resident": vm.Populate} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, open maker[uint64, uint64]) {
				m := withHuge(open, refusing(absent, vm.ErrUnsupported, new(atomic.Int32)))(alloctest.New(t), 0)
				defer m.Close()
				put(t, m, 0, 2000, true)
				if _, huge := tablesOf(m); huge > 0 || hugeOf(m).size != 0 || len(hugeOf(m).blocks) > 1 {
					t.Errorf("%d tables in huge pages, %d blocks", huge, len(hugeOf(m).blocks))
				}
			})
		})
	}
}

// refusing returns an advise that refuses an advice, and counts that in tries, while tries is 0 or
// more.
func refusing(refused vm.Advice, err error, tries *atomic.Int32) func([]byte, vm.Advice) error {
	return func(_ []byte, a vm.Advice) error {
		if a == refused && tries.Load() >= 0 {
			tries.Add(1)
			return err
		}
		return nil
	}
}

// A map whose parent or system refuses huge pages for a while tries again as it grows, but not for
// each table.
func TestHugePagesAfterARefusal(t *testing.T) {
	const none = vm.Advice(-1)
	for name, refused := range map[string]vm.Advice{"a block": none, "advice": vm.HugePages, "a page": vm.Populate} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, open maker[uint64, uint64]) {
				var tries atomic.Int32
				parent := &smallBlocks{alloctest.New(t), nil}
				if refused == none {
					parent.tries = &tries
				}
				m := withHuge(open, refusing(refused, errors.New("refused"), &tries))(parent, 0)
				defer m.Close()
				put(t, m, 0, 4000, true)
				full, huge := tablesOf(m)
				if n := tries.Load(); huge > 0 || n < 2 || int(n) > full/3 || len(hugeOf(m).blocks) > 1 {
					t.Errorf("%d of %d tables in huge pages, %d blocks, %d tries", huge, full, len(hugeOf(m).blocks), n)
				}
				tries.Store(math.MinInt32)
				put(t, m, 4000, 13_000, true)
				if more, huge := tablesOf(m); huge < (more-full)/2 {
					t.Errorf("%d of %d new tables are in huge pages", huge, more-full)
				}
			})
		})
	}
}

// A Put that splits a table may fail when the directory doubles. Its new table goes back to the page.
func TestRefusedSplitKeepsNoHugeTable(t *testing.T) {
	a := &noDirectories{Allocator: alloctest.New(t)}
	m := withHuge(makeMap[uint64, uint64], obey)(a, 0)
	defer m.Close()
	put(t, m, 0, 2000, true)
	a.refuses = true
	h, key, failures := hugeOf(m), uint64(2000), 0
	for failures < 100 {
		h.needed().wait()
		if m.Put(key, key) == nil {
			key++
			continue
		}
		left, next := h.left, h.next
		for range 10 {
			if m.Put(key, key) == nil {
				t.Fatal("the directory has doubled")
			}
			failures++
		}
		if h.left != left || h.next != next {
			t.Fatalf("the page has %d bytes left, before 10 more refusals %d", h.left.size(), left.size())
		}
	}
	mustBeWhole(t, m)
}

// noDirectories refuses blocks for directories.
type noDirectories struct {
	freehold.Allocator
	refuses bool
}

func (n *noDirectories) Alloc(size, align int) ([]byte, error) {
	if n.refuses && align == lineBytes {
		return nil, freehold.ErrOutOfMemory
	}
	return n.Allocator.Alloc(size, align)
}

// smallBlocks refuses blocks that are aligned to more than two lines, and counts them in tries, while
// that is 0 or more.
type smallBlocks struct {
	freehold.Allocator
	tries *atomic.Int32
}

func (s *smallBlocks) Alloc(size, align int) ([]byte, error) {
	if align > 2*lineBytes && s.tries != nil && s.tries.Load() >= 0 {
		s.tries.Add(1)
		return nil, freehold.ErrOutOfMemory
	}
	return s.Allocator.Alloc(size, align)
}

// A table is in a block from its first address to the one before its end: another block may follow.
func TestTablesInBlocks(t *testing.T) {
	h := hugeTables{blocks: []extent{{0x1000, 0x2000}, {0x3000, 0x5000}}}
	for at, want := range map[uintptr]bool{0xFFF: false, 0x1000: true, 0x1FFF: true, 0x2000: false, 0x2FFF: false, 0x3000: true, 0x4FFF: true, 0x5000: false} {
		if h.has(at) != want {
			t.Errorf("%#x is in a block: %t", at, !want)
		}
	}
}
