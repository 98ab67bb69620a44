package btree

import (
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/arg"
)

// check panics unless
//   - all leaves are on one level, and nodes are as full as they must be,
//   - keys ascend, and a key between two children is the least below the second one, with its string,
//   - the list of leaves has them all, in both directions,
//   - the counts are right, also those of entries below each node with Options.Ranks.
func (m *Map[K, V]) check() {
	if m.root == nil {
		if m.height != 0 || m.length != 0 || m.counts != (counts{}) {
			m.broken("without a root it has height %d, %d entries and %+v", m.height, m.length, m.counts)
		}
		return
	}
	c := checker[K, V]{m: m}
	c.below(m.root, m.height-1, true)
	if !m.cloned && c.before != nil && c.before.next != 0 {
		m.broken("the last leaf has a next one")
	}
	if c.length != m.length || c.counts != m.counts {
		m.broken("it has %d entries and %+v, and counts %d and %+v", c.length, c.counts, m.length, m.counts)
	}
}

func (m *Map[K, V]) broken(format string, args ...any) {
	arg.Panicf("btree.Map", "the tree is broken, or compare is no order: "+format, args...)
}

type checker[K, V any] struct {
	m      *Map[K, V]
	before *node // the leaf
	length int
	counts
}

// below checks the nodes from n down, which is on that level. The last node of a level
// may have fewer entries than others.
func (c *checker[K, V]) below(n *node, level int, last bool) {
	m, l := c.m, c.m.layoutOf(level)
	least := l.least
	if last {
		least = 1
	}
	if n.count() < least || n.count() > l.slots {
		m.broken("a node on level %d of %d has %d keys, want %d to %d", level, m.height, n.count(), least, l.slots)
	}
	for i := 1; i < n.count(); i++ {
		if m.compare(*m.keySlot(l, n, i-1), *m.keySlot(l, n, i)) >= 0 {
			m.broken("keys %d and %d of a node on level %d do not ascend", i-1, i, level)
		}
	}
	if level == 0 {
		c.leaf(n)
		return
	}
	c.inner++
	for i := range n.count() + 1 {
		child, before := m.child(n, i), c.length
		c.below(child, level-1, last && i == n.count())
		if size := c.length - before; m.ranks && *l.size(n, i) != size {
			m.broken("child %d of a node on level %d has %d entries, and counts %d", i, level, size, *l.size(n, i))
		}
		if i == 0 {
			continue
		}
		for range level - 1 {
			child = m.child(child, 0)
		}
		if m.compare(*m.keySlot(l, n, i-1), m.key(child, 0)) != 0 {
			m.broken("key %d of a node on level %d is not the least below child %d", i-1, level, i)
		}
		if m.texts && dataOf(textsOf(l, n)[i-1]) != dataOf(textsOf(&m.leaf, child)[0]) {
			m.broken("key %d of a node on level %d is not the string of the leaf", i-1, level)
		}
	}
}

func dataOf(t text) *byte { return unsafe.StringData(t.string.Get()) }

// leaf checks what the leaf n has, and that it follows the one before.
func (c *checker[K, V]) leaf(n *node) {
	m := c.m
	c.leaves++
	c.length += n.count()
	if !m.cloned && n.prev.pointer() != c.before || !m.cloned && c.before != nil && c.before.next.pointer() != n {
		m.broken("a leaf and the one before it are not linked")
	}
	if c.before != nil && m.compare(m.key(c.before, c.before.count()-1), m.key(n, 0)) >= 0 {
		m.broken("the keys of a leaf and the one before it do not ascend")
	}
	c.before = n
	if m.texts {
		for _, t := range textsOf(&m.leaf, n) {
			c.textBytes += t.string.Len()
			if t.prefix != prefixOf(t.string.Get()) {
				m.broken("the string key %q has the prefix %#x", t.string.Get(), t.prefix)
			}
		}
	}
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
		l := newLayout(24, test.key, test.align, test.value, 8, test.extra, false)
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
