// Memory: allocation and counts of nodes.

package btree

import "github.com/freehold-go/freehold/internal/container"

// counts are the map's nodes and bytes from its parent.
type counts struct {
	leaves, inner int
	textBytes     int // of string keys
}

// spare is a free list of nodes that Clear keeps, linked by next.
type spare struct {
	first address
	n     int
}

// newNode returns an empty node for a level; level 0 is the leaves.
func (m *Map[K, V]) newNode(level int) (*node, error) {
	spare := m.spareOf(level)
	n := spare.first.pointer()
	if n != nil {
		spare.first = n.next
		spare.n--
	} else {
		b, err := m.base.Parent.Alloc(m.layoutOf(level).bytes, lineBytes)
		if err != nil {
			return nil, container.Refused(err)
		}
		n = nodeOf(b)
	}
	m.count(level, 1)
	n.entries, n.refs = 0, 0
	return n, nil
}

// freeNode frees n, a node on the given level.
func (m *Map[K, V]) freeNode(n *node, level int) {
	m.count(level, -1)
	m.base.Parent.Free(m.layoutOf(level).block(n))
}

// spareBelow makes n, a node on the given level, and all nodes below it spare.
func (m *Map[K, V]) spareBelow(n *node, level int) {
	if level > 0 {
		for i := range n.count() + 1 {
			m.spareBelow(m.child(n, i), level-1)
		}
	}
	m.count(level, -1)
	spare := m.spareOf(level)
	n.next = spare.first
	spare.first = n.address()
	spare.n++
}

// freeSpare frees the spare nodes.
func (m *Map[K, V]) freeSpare() {
	for level := range m.spare {
		for m.spare[level].n > 0 {
			n, _ := m.newNode(level)
			m.freeNode(n, level)
		}
	}
}

func (m *Map[K, V]) spareOf(level int) *spare { return &m.spare[min(level, 1)] }

func (m *Map[K, V]) count(level, change int) {
	if level == 0 {
		m.counts.leaves += change
	} else {
		m.counts.inner += change
	}
}

// layoutOf returns the layout of the nodes on a level.
func (m *Map[K, V]) layoutOf(level int) *layout {
	if level == 0 {
		return &m.leaf
	}
	return &m.inner
}
