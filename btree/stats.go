// Stats: figures of a map.

package btree

// Stats is a snapshot of a map.
type Stats struct {
	Name     string // Options.Name
	Len      int    // entries
	Slots    int    // capacity of the leaves in entries; Len / Slots is their fill ratio
	Leaves   int    // nodes with entries
	Inner    int    // nodes above them
	Height   int    // levels of nodes; Get reads one node a level
	Reserved int    // bytes from the parent: nodes, spare ones after Clear too, and string keys. Shared nodes count in each clone
}

// Stats returns the map's figures. It costs a few loads, and may be called after Close.
func (m *Map[K, V]) Stats() Stats {
	return Stats{
		Name:     m.base.Name,
		Len:      m.length,
		Slots:    m.counts.leaves * m.leaf.slots,
		Leaves:   m.counts.leaves,
		Inner:    m.counts.inner,
		Height:   m.height,
		Reserved: (m.counts.leaves+m.spare[0].n)*m.leaf.bytes + (m.counts.inner+m.spare[1].n)*m.inner.bytes + m.counts.textBytes,
	}
}
