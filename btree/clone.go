// Clone: copy-on-write. Maps share nodes, and copy a shared node before they change it.
//
//	map       root     root    clone
//	            \       /
//	     node: refs 1      its children: refs 0
//
// refs of a node counts the references to it, from roots and from inner nodes, beyond the first. A
// node belongs to one map alone if it and all nodes above it have refs 0. So a change first replaces
// each shared node on the path to its leaf by a copy. Nothing in a shared node changes but refs,
// atomically, so goroutines may use clones at once.
//
// The leaves of a cloned map are not linked, because a leaf may have other neighbours in each map.
//
// Each string key belongs to one leaf, and a copy of a leaf copies its strings. The separator between
// two leaves refers to the first string of the right leaf, so it changes when that leaf is copied.

package btree

import (
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/container"
)

// Clone returns a map with the same entries, options and parent. It takes constant time and no
// memory of the parent. The two maps share nodes. Before a map changes a shared node, it copies the
// node with its string keys. A change copies at most one node on each level, and a deletion also
// the neighbours that it joins. Close both maps, in any order; a node is freed by the last map that
// has it.
//
// Clone counts as a change of m. Afterwards, two goroutines may use the two maps at once if the
// parent is safe for concurrent use. These rules then hold for both maps:
//
//   - [Map.Put] may fail even if the key is in the map.
//   - [Map.Delete], [Map.Take], [Map.DeleteRange], [Map.DeleteFunc], [Map.At] and [Cursor.Value] may
//     take memory, and panic if there is none. [Map.Compute] returns the error.
//   - At and Cursor.Value count as changes, and their pointers are valid until the next Clone too.
//   - An iterator goes from leaf to leaf through the inner nodes.
//
// They end when the map is empty.
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
	if i == n.count() || m.compare(m.key(n, i), k) != 0 { // only if compare contradicts itself
		return n, i, false, nil
	}
	err = m.own(&p)
	return p[0].n, i, true, err
}

// own replaces each shared node of p by a copy. After an error, it has replaced some of them.
func (m *Map[K, V]) own(p *path) error {
	for level := m.height - 1; level >= 0; level-- {
		if err := m.unshare(p, level); err != nil {
			return err
		}
	}
	return nil
}

// ownToDelete is own before n entries of the leaf of p are deleted. It also replaces the neighbours
// that join may change. The last node of a level may have few entries. So if there is no memory for
// its neighbour, and it does not become empty, ownToDelete stops without an error, and join leaves
// the two as they are.
func (m *Map[K, V]) ownToDelete(p *path, n int) error {
	if !m.cloned {
		return nil
	}
	if err := m.own(p); err != nil {
		return err
	}
	left := p[0].n.count() - n
	for level := 0; level < m.height-1 && left < m.layoutOf(level).least; level++ {
		sibling := *p
		parent := &sibling[level+1]
		if parent.i--; parent.i < 0 {
			parent.i = 1
		}
		sibling[level].n = m.child(parent.n, parent.i)
		if err := m.unshare(&sibling, level); err != nil {
			if left > 0 && m.isLast(p, level) {
				return nil
			}
			return err
		}
		left = parent.n.count() - 1
	}
	return nil
}

// mustOwn panics with the error of ownToDelete or findOwn.
func (m *Map[K, V]) mustOwn(call string, err error) {
	if err != nil {
		arg.Panicf("btree.Map."+call, "%v: the map copies nodes that it shares with a clone", err)
	}
}

// unshare replaces the node of p on the given level by a copy, if it is shared.
//
// Precondition: no node above it is shared.
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
		m.setSeparator(p, fresh)
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
			fresh.entries++
			if textsOf(l, fresh)[fresh.count()-1], err = m.ownText(t.string.Get()); err != nil {
				fresh.entries--
				m.freeTexts(fresh, 0, fresh.count())
				m.freeNode(fresh, level)
				return nil, err
			}
		}
	} else {
		l.copyKeys(fresh, 0, n, 0, n.count())
	}
	fresh.setCount(n.count())
	l.copyValues(fresh, 0, n, 0, n.count()+l.extra)
	if level > 0 {
		for i := range n.count() + 1 {
			atomic.AddUint32(&m.child(n, i).refs, 1)
		}
	}
	return fresh, nil
}

// drop ends a reference to n, a node on the given level. If it was the last one, drop frees the
// node and drops its children.
func (m *Map[K, V]) drop(n *node, level int) {
	const none = ^uint32(0)
	if atomic.AddUint32(&n.refs, none) != none {
		return
	}
	if level > 0 {
		for i := range n.count() + 1 {
			m.drop(m.child(n, i), level-1)
		}
	} else if m.texts {
		m.freeTexts(n, 0, n.count())
	}
	m.base.Parent.Free(m.layoutOf(level).block(n))
}

// next returns the leaf after n, or nil. *p is nil in the first call of an iteration. In later calls
// it is the path that the previous call set.
func (m *Map[K, V]) next(n *node, p **path) *node {
	if !m.cloned {
		return n.next.pointer()
	}
	return m.neighbour(n, n.count()-1, p, m.forward)
}

// prev is next in the other direction.
func (m *Map[K, V]) prev(n *node, p **path) *node {
	if !m.cloned {
		return n.prev.pointer()
	}
	return m.neighbour(n, 0, p, m.backward)
}

// neighbour returns the leaf to which move leads from entry i of n, or nil.
func (m *Map[K, V]) neighbour(n *node, i int, p **path, move func(*path) bool) *node {
	if *p == nil {
		*p = new(path)
		m.trace(*p, m.key(n, i))
	}
	if (*p)[0].n != n || !move(*p) { // p leads to n unless compare contradicts itself
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
