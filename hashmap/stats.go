// Stats: a map's figures.

package hashmap

// Stats is a snapshot of a map. Sizes are bytes.
type Stats struct {
	Name     string // Options.Name
	Len      int    // entries
	Slots    int    // for entries, in all tables
	Tables   int
	Moved    int // entries moved by growth so far
	Reserved int // from the parent
}

// Stats returns a snapshot. It costs a few loads, and may be called after Close.
func (m *Map[K, V]) Stats() Stats {
	return Stats{Name: m.base.Name, Len: m.len, Slots: m.slots, Tables: m.tables, Moved: m.moved, Reserved: m.bytes + m.huge.bytes}
}
