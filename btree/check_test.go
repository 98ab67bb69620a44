package btree

import (
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// TestCheckFindsWhatIsBroken breaks each invariant of a tree of three levels.
func TestCheckFindsWhatIsBroken(t *testing.T) {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	m := New[int, [100]byte](heap, nil)
	defer m.Close()
	for i := range 6000 {
		_ = m.Put(i, [100]byte{})
	}
	if m.height != 3 {
		t.Fatalf("the tree has %d levels", m.height)
	}
	first := m.first()
	second := first.next.pointer()
	inner := m.child(m.root, 1)
	keys := func(n *node, l *layout) []int { return keysOf[int](l, n) }
	for want, at := range map[string]struct {
		word *int
		bad  int
	}{
		"a node on level 0 of 3 has 1 keys":                 {&second.count, 1},
		"a node on level 1 of 3 has 1000 keys":              {&inner.count, 1000},
		"keys 1 and 2 of a node on level 0 do not ascend":   {&keys(second, &m.leaf)[2], 0},
		"keys 4 and 5 of a node on level 1 do not ascend":   {&keys(inner, &m.inner)[5], 0},
		"key 0 of a node on level 2 is not the least":       {&keys(m.root, &m.inner)[0], keys(inner, &m.inner)[0] - 1},
		"the keys of a leaf and the one before it do not":   {&keys(first, &m.leaf)[first.count-1], 100_000},
		"a leaf and the one before it are not linked":       {(*int)(unsafe.Pointer(&second.prev)), 0},
		"the last leaf has a next one":                      {(*int)(unsafe.Pointer(&m.last().next)), int(first.address())},
		"it has 6000 entries and {leaves:":                  {&m.length, 5999},
		"and counts 6000 and {leaves:1 ":                    {&m.counts.leaves, 1},
		"without a root it has height 3, 6000 entries and ": {(*int)(unsafe.Pointer(&m.root)), 0},
	} {
		before := *at.word
		*at.word = at.bad
		mustPanic(t, want, m.check)
		*at.word = before
	}
	m.check()

	texts := New[string, int](heap, nil)
	defer texts.Close()
	_ = texts.Put("abc", 1)
	prefix := &textsOf(&texts.leaf, texts.root)[0].prefix
	*prefix++
	mustPanic(t, `the string key "abc" has the prefix`, texts.check)
	*prefix--
}

// TestLayouts: nodes are about 2 KiB, unless entries are large or tiny, and nothing in them
// overlaps.
func TestLayouts(t *testing.T) {
	for _, test := range []struct {
		key, value, align uintptr
		extra, slots      int
	}{
		{8, 8, 8, 0, 126},
		{8, 8, 8, 1, 126},
		{4, 4, 4, 0, 252},
		{4, 8, 4, 1, 168},
		{24, 8, 8, 0, 63},
		{1, 0, 1, 0, maxSlots},
		{0, 0, 1, 0, maxSlots},
		{0, 8, 1, 0, 253},
		{200, 8, 8, 1, 9},
		{8, 2000, 8, 0, minSlots},
		{2000, 2000, 8, 0, minSlots},
	} {
		l := newLayout(24, test.key, test.align, test.value, 8, test.extra)
		if l.slots != test.slots {
			t.Errorf("%+v: %d slots", test, l.slots)
		}
		if l.bytes > nodeBytes && l.slots > minSlots || l.bytes < 24 {
			t.Errorf("%+v: %d bytes", test, l.bytes)
		}
		if l.keys%test.align != 0 || l.values%8 != 0 {
			t.Errorf("%+v: keys from %d, values from %d", test, l.keys, l.values)
		}
		if test.key > 0 && l.keys < 24 || test.value > 0 && l.values < l.keys+uintptr(l.slots)*test.key {
			t.Errorf("%+v: keys from %d, values from %d", test, l.keys, l.values)
		}
		if test.value > 0 && uintptr(l.bytes) != l.values+uintptr(l.slots+l.extra)*test.value {
			t.Errorf("%+v: values from %d, %d bytes", test, l.values, l.bytes)
		}
		// What join leaves behind must not be joined again at once.
		if half := (l.merge + 1 - l.extra) / 2; half < l.least || l.least < 2 || l.merge > l.slots {
			t.Errorf("%+v: least %d, merge %d", test, l.least, l.merge)
		}
	}
}

func TestStats(t *testing.T) {
	m := New[uint64, uint64](alloctest.New(t), &Options{Name: "prices"})
	defer m.Close()
	for i := range uint64(200) {
		_ = m.Put(i, i)
	}
	want := Stats{Name: "prices", Len: 200, Slots: 2 * m.leaf.slots, Leaves: 2, Inner: 1, Height: 2, Reserved: 2*m.leaf.bytes + m.inner.bytes}
	if st := m.Stats(); st != want {
		t.Errorf("Stats are %+v, want %+v", st, want)
	}
	texts := New[string, bool](alloctest.New(t), nil)
	defer texts.Close()
	_ = texts.Put("twelve bytes", true)
	_ = texts.Put("", true)
	if st := texts.Stats(); st.Reserved != texts.leaf.bytes+12 {
		t.Errorf("a map of 12 bytes of keys has %d bytes, want %d", st.Reserved, texts.leaf.bytes+12)
	}
}
