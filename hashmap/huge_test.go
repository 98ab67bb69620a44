package hashmap

import (
	"errors"
	"math/bits"
	"testing"
	"testing/synctest"

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
		if n := memory.Counts().Live; n != 0 {
			t.Errorf("%d blocks after Close", n)
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

// Grow waits for pages, because it need not be quick.
func TestGrowTakesHugePages(t *testing.T) {
	both(t, func(t *testing.T, open maker[uint64, uint64]) {
		m := withHuge(open, obey)(alloctest.New(t), 0)
		defer m.Close()
		if err := m.Grow(9_500); err != nil { // a Map's tables then have three groups of at most four
			t.Fatal(err)
		}
		if full, huge := tablesOf(m); full < 200 || huge < full*3/4 {
			t.Errorf("%d of %d tables are in huge pages", huge, full)
		}
	})
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
	refused := errors.New("refused")
	for name, advise := range map[string]func([]byte, vm.Advice) error{
		"the system has none": func(_ []byte, a vm.Advice) error {
			if a == vm.HugePages {
				return refused
			}
			return nil
		},
		"the system makes none resident": func(_ []byte, a vm.Advice) error {
			if a == vm.Populate {
				return refused
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, open maker[uint64, uint64]) {
				m := withHuge(open, advise)(alloctest.New(t), 0)
				defer m.Close()
				put(t, m, 0, 2000, true)
				if _, huge := tablesOf(m); huge > 0 || hugeOf(m).size != 0 || len(hugeOf(m).blocks) > 1 {
					t.Errorf("%d tables in huge pages, %d blocks", huge, len(hugeOf(m).blocks))
				}
			})
		})
	}
	t.Run("the parent has no such blocks", func(t *testing.T) {
		both(t, func(t *testing.T, open maker[uint64, uint64]) {
			m := withHuge(open, obey)(smallBlocks{alloctest.New(t)}, 0)
			defer m.Close()
			put(t, m, 0, 2000, true)
			if h := hugeOf(m); h.size != 0 || len(h.blocks) > 0 {
				t.Errorf("%d blocks", len(h.blocks))
			}
		})
	})
}

// smallBlocks refuses blocks that are aligned to more than two lines.
type smallBlocks struct{ freehold.Allocator }

func (s smallBlocks) Alloc(size, align int) ([]byte, error) {
	if align > 2*lineBytes {
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
