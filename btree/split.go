// Split: insertion, and splitting of full nodes.
//
// An insert into a full leaf splits the leaf, and each full node above it, from the top down. All new
// nodes are allocated before anything changes, so an error leaves the tree as it was. If the new key
// is greater than all others, nodes split before their last entry, so ascending keys fill all nodes.

package btree

import "github.com/freehold-go/freehold"

// insert inserts k with an undefined value at index i of the leaf n, or where k belongs after a
// split if that leaf is full. n is nil if the map is empty. It returns the new entry's place.
func (m *Map[K, V]) insert(n *node, i int, k K) (*node, int, error) {
	var t text
	var err error
	if m.texts {
		if t, err = m.ownText(stringOf(&k)); err != nil {
			return nil, 0, err
		}
	}
	if n == nil || n.count() == m.leaf.slots || m.cloned {
		if n, i, err = m.makeRoom(n, k); err != nil {
			if m.texts {
				freehold.FreeString(m.base.Parent, t.string.Get())
			}
			return nil, 0, err
		}
	}
	if m.ranks {
		m.countNew(n, k)
	}
	m.leaf.shift(n, i, i+1, 0)
	if m.texts {
		textsOf(&m.leaf, n)[i] = t
		m.counts.textBytes += t.string.Len()
	} else {
		*m.keySlot(&m.leaf, n, i) = k
	}
	m.length++
	m.version++
	return n, i, nil
}

// makeRoom makes room for k and returns the place for it. n is the leaf of k, which is full or may be
// shared, or nil if the map is empty.
func (m *Map[K, V]) makeRoom(n *node, k K) (*node, int, error) {
	if n == nil {
		n, err := m.newNode(0)
		if err == nil {
			n.prev, n.next = 0, 0
			m.root, m.height = n, 1
		}
		return n, 0, err
	}
	var p path
	m.trace(&p, k)
	if m.cloned {
		if err := m.own(&p); err != nil {
			return nil, 0, err
		}
	}
	if p[0].n.count() == m.leaf.slots { // unless compare contradicts itself
		if err := m.split(&p); err != nil {
			return nil, 0, err
		}
	}
	return p[0].n, p[0].i, nil
}

// split splits the full leaf of p, and the full nodes directly above it. p[0] is then the same place
// between two keys. The steps above it are undefined.
func (m *Map[K, V]) split(p *path) error {
	var fresh [maxHeight]*node
	levels := 1 // number of levels that split
	for levels < m.height && p[levels].n.count() == m.inner.slots {
		levels++
	}
	needed := levels
	if levels == m.height {
		needed++ // a new root
	}
	for level := range needed {
		n, err := m.newNode(level)
		if err != nil {
			for level > 0 {
				level--
				m.freeNode(fresh[level], level)
			}
			return err
		}
		fresh[level] = n
	}

	if levels == m.height {
		root := fresh[levels]
		*m.inner.child(root, 0) = m.root.address()
		p[levels] = step{root, 0}
		m.root = root
		m.height++
	}
	atEnd := p[0].i == p[0].n.count() && m.isLast(p, 0)
	for level := levels - 1; level > 0; level-- {
		m.splitInner(p, level, fresh[level], atEnd)
	}
	m.splitLeaf(p, fresh[0], atEnd)
	return nil
}

// splitInner moves the upper half of p's full node on the given level to right. The node above has
// room.
func (m *Map[K, V]) splitInner(p *path, level int, right *node, atEnd bool) {
	n, l := p[level].n, &m.inner
	at := n.count() / 2
	if atEnd {
		at = n.count() - 1
	}
	l.copyKeys(right, 0, n, at+1, n.count()-at-1)
	l.copyValues(right, 0, n, at+1, n.count()-at)
	right.setCount(n.count() - at - 1)
	n.setCount(at)
	m.link(p[level+1], level+1, l, n, at, right)
	if p[level].i > at {
		p[level] = step{right, p[level].i - at - 1}
	}
}

// splitLeaf moves the upper half of p's full leaf to right. The node above has room.
func (m *Map[K, V]) splitLeaf(p *path, right *node, atEnd bool) {
	n, l := p[0].n, &m.leaf
	at := (n.count() + 1) / 2
	if atEnd {
		at = n.count() - 1
	}
	l.copyKeys(right, 0, n, at, n.count()-at)
	l.copyValues(right, 0, n, at, n.count()-at)
	right.setCount(n.count() - at)
	n.setCount(at)
	if !m.cloned {
		right.prev, right.next = n.address(), n.next
		if next := n.next.pointer(); next != nil {
			next.prev = right.address()
		}
		n.next = right.address()
	}
	m.link(p[1], 1, l, right, 0, right)
	if p[0].i > at {
		p[0] = step{right, p[0].i - at}
	}
}

// link inserts child into parent.n, which is on the given level, behind child parent.i. The key
// between the two is a copy of key i of n, which has layout l.
func (m *Map[K, V]) link(parent step, level int, l *layout, n *node, i int, child *node) {
	m.inner.shift(parent.n, parent.i, parent.i+1, 1)
	m.inner.copyKey(parent.n, parent.i, l, n, i)
	*m.inner.child(parent.n, parent.i+1) = child.address()
	m.setSize(parent.n, parent.i, level)
	m.setSize(parent.n, parent.i+1, level)
}
