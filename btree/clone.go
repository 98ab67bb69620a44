// Clone: maps that share nodes, which are copied before they change (copy-on-write).
//
//	map       root     root    clone
//	            \       /
//	     node: 1 other reference      its children: none but the node's
//
// refs of a node counts the references to it beyond the first, from roots and from inner nodes. A
// node with refs 0 belongs to one map if all nodes above it do too. So a call that changes a map
// first goes down the path to the leaf, and replaces each node that has another reference by a copy
// of its own. A node that is shared never changes but for refs, so clones may be used at once.
//
// The leaves of a map with a clone are not linked: their neighbours may differ from map to map.
//
// A string key is part of one leaf. A copy of a leaf has copies of its strings, and the key above
// it that separates it from the leaf before refers to one of these.

package btree

import (
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/container"
)

// Clone returns a map with the same entries, options and parent. It takes constant time and no
// memory of the parent. The two share nodes. Before one of them changes a node it copies it, with
// its string keys: a change copies at most one node a level, and a neighbour of each that it joins.
// Each is closed on its own, in any order; the last of those that share a node frees it.
//
// Clone counts as a change of m. Afterwards, the two may be used by different goroutines at once if
// the parent is safe for concurrent use. For each of both:
//
//   - [Map.Put] of a key that is in the map may fail too.
//   - [Map.Delete], [Map.Take], [Map.DeleteRange], [Map.DeleteFunc], [Map.At] and [Cursor.Value] may
//     take memory, and panic if there is none. [Map.Compute] returns the error.
//   - At and Cursor.Value count as changes, and their pointers are valid until the next Clone too.
//   - Iterators search for each next leaf.
//
// That ends when the map is empty.
func (m *Map[K, V]) Clone() *Map[K, V] {
	m.mustBeWritable("Clone")
	c := &Map[K, V]{
		root: m.root, height: m.height, length: m.length, counts: m.counts,
		leaf: m.leaf, inner: m.inner, keyAt: m.keyAt, texts: m.texts, ranks: m.ranks,
		search: m.search, compare: m.compare,
	}
	container.Make(c, &c.base, &mapKind, m.base.Parent, m.base.Name)
	if m.root != nil {
		m.cloned, c.cloned = true, true
		atomic.AddUint32(&m.root.refs, 1)
	}
	return c
}

func (n *node) shared() bool { return atomic.LoadUint32(&n.refs) > 0 }

// findOwn is find for a call that changes the value of k, if k is in the map.
func (m *Map[K, V]) findOwn(call string, k K) (n *node, i int, found bool, err error) {
	n, i, found = m.find(call, k)
	if found && m.cloned {
		return m.ownPlace(k)
	}
	return n, i, found, nil
}

// ownPlace is findOwn of a key that the map has.
func (m *Map[K, V]) ownPlace(k K) (n *node, i int, found bool, err error) {
	var p path
	m.trace(&p, k)
	n, i = p[0].n, p[0].i
	if i == n.count || m.compare(m.key(n, i), k) != 0 { // compare contradicts itself
		return n, i, false, nil
	}
	err = m.own(&p)
	return p[0].n, i, true, err
}

// own makes each node of p the map's own. On an error, some are.
func (m *Map[K, V]) own(p *path) error {
	for level := m.height - 1; level >= 0; level-- {
		if err := m.unshare(p, level); err != nil {
			return err
		}
	}
	return nil
}

// ownToDelete is own before n entries of the leaf of p are deleted. The neighbours that join may
// change are then the map's own too. If there is no memory for a neighbour, the last nodes of the
// levels stay as they are, which may have few entries.
func (m *Map[K, V]) ownToDelete(p *path, n int) error {
	if !m.cloned {
		return nil
	}
	if err := m.own(p); err != nil {
		return err
	}
	left := p[0].n.count - n
	for level := 0; level < m.height-1 && left < m.layoutOf(level).least; level++ {
		beside := *p
		parent := &beside[level+1]
		if parent.i--; parent.i < 0 {
			parent.i = 1
		}
		beside[level].n = m.child(parent.n, parent.i)
		if err := m.unshare(&beside, level); err != nil {
			if left > 0 && m.isLast(p, level) {
				return nil
			}
			return err
		}
		left = parent.n.count - 1
	}
	return nil
}

// mustOwn panics with the error of ownToDelete or findOwn.
func (m *Map[K, V]) mustOwn(call string, err error) {
	if err != nil {
		arg.Panicf("btree.Map."+call, "%v: the map copies nodes that it shares with a clone", err)
	}
}

// unshare replaces the node of p on the given level by a copy, if it is shared. The nodes above it
// are the map's own.
func (m *Map[K, V]) unshare(p *path, level int) error {
	n := p[level].n
	if !n.shared() {
		return nil
	}
	fresh, err := m.copied(n, level)
	if err != nil {
		return err
	}
	if level == m.height-1 {
		m.root = fresh
	} else {
		*m.inner.child(p[level+1].n, p[level+1].i) = fresh.address()
	}
	p[level].n = fresh
	if level == 0 && m.texts {
		m.raise(p, fresh)
	}
	m.count(level, -1)
	m.drop(n, level)
	m.version++
	return nil
}

// copied returns a copy of n, a node on the given level.
func (m *Map[K, V]) copied(n *node, level int) (*node, error) {
	fresh, err := m.newNode(level)
	if err != nil {
		return nil, err
	}
	l := m.layoutOf(level)
	if level == 0 && m.texts {
		for _, t := range textsOf(l, n) {
			fresh.count++
			if textsOf(l, fresh)[fresh.count-1], err = m.ownText(t.string.Get()); err != nil {
				fresh.count--
				m.freeTexts(fresh, 0, fresh.count)
				m.freeNode(fresh, level)
				return nil, err
			}
		}
	} else {
		l.copyKeys(fresh, 0, n, 0, n.count)
	}
	fresh.count = n.count
	l.copyValues(fresh, 0, n, 0, n.count+l.extra)
	if level > 0 {
		for i := range n.count + 1 {
			atomic.AddUint32(&m.child(n, i).refs, 1)
		}
	}
	return fresh, nil
}

// drop ends a reference to n, a node on the given level. The last one frees the node and ends its
// references.
func (m *Map[K, V]) drop(n *node, level int) {
	const none = ^uint32(0)
	if atomic.AddUint32(&n.refs, none) != none {
		return
	}
	if level > 0 {
		for i := range n.count + 1 {
			m.drop(m.child(n, i), level-1)
		}
	} else if m.texts {
		m.freeTexts(n, 0, n.count)
	}
	m.base.Parent.Free(m.layoutOf(level).block(n))
}

// next returns the leaf behind n, or nil. *p is nil, or the path that the last call has set.
func (m *Map[K, V]) next(n *node, p **path) *node {
	if !m.cloned {
		return n.next.pointer()
	}
	return m.beside(n, n.count-1, p, m.forward)
}

// prev is next in the other direction.
func (m *Map[K, V]) prev(n *node, p **path) *node {
	if !m.cloned {
		return n.prev.pointer()
	}
	return m.beside(n, 0, p, m.backward)
}

func (m *Map[K, V]) beside(n *node, i int, p **path, move func(*path) bool) *node {
	if *p == nil {
		*p = new(path)
		m.trace(*p, m.key(n, i))
	}
	if (*p)[0].n != n || !move(*p) { // unless compare contradicts itself, n is there
		return nil
	}
	return (*p)[0].n
}

// linked returns the neighbour at a, a field of a leaf, or nil if leaves are not linked.
func (m *Map[K, V]) linked(a address) *node {
	if m.cloned {
		return nil
	}
	return a.pointer()
}
