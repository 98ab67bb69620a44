// Memory: nodes from the parent, and counts of them.

package btree

// counts are of what the map holds from its parent.
type counts struct {
	leaves, inner int
	textBytes     int // of string keys
}

// newNode returns an empty node for that level above the leaves.
func (m *Map[K, V]) newNode(level int) (*node, error) {
	b, err := m.parent.Alloc(m.layoutOf(level).bytes, lineBytes)
	if err != nil {
		return nil, err
	}
	m.count(level, 1)
	n := nodeOf(b)
	n.count = 0
	return n, nil
}

// freeNode frees n, which is on that level.
func (m *Map[K, V]) freeNode(n *node, level int) {
	m.count(level, -1)
	m.parent.Free(m.layoutOf(level).block(n))
}

func (m *Map[K, V]) count(level, change int) {
	if level == 0 {
		m.counts.leaves += change
	} else {
		m.counts.inner += change
	}
}

// layoutOf returns the layout of the nodes on that level.
func (m *Map[K, V]) layoutOf(level int) *layout {
	if level == 0 {
		return &m.leaf
	}
	return &m.inner
}
