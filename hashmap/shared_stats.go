// Counts of a Shared.

package hashmap

import (
	"sync/atomic"
)

// SharedStats is a snapshot of a Shared.
type SharedStats struct {
	Name      string // Options.Name
	Len       int    // entries
	Slots     int    // for entries, in all tables; a table grows when it is about 0.9 full
	Tables    int
	Directory int // entries of the directory
	Reserved  int // bytes from the parent: tables, directories and Text
	Spare     int // of Reserved: tables that wait for reuse
	Text      int // of Reserved: blocks of strings, bytes and large values, retired ones too
}

// Len returns the number of entries. It visits each table, which has about 500 entries of 16
// bytes; no table grows meanwhile. During writes it is approximate.
func (m *Shared[K, V]) Len() int { return m.Stats().Len }

// Stats returns a snapshot. It costs as much as Len, and may be called after Close.
func (m *Shared[K, V]) Stats() SharedStats {
	if m.dir.Load() == 0 {
		return SharedStats{}
	}
	st := m.stats()
	st.Text += int(m.retired.bytes.Load())
	st.Reserved += st.Text
	return st
}

func (m *sharedTables) stats() SharedStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := SharedStats{Name: m.base.Name, Tables: m.tables, Reserved: m.reserved + m.huge.bytes}
	m.each(func(t table) {
		st.Len += int(atomic.LoadUintptr(&t.head().live))
		st.Text += int(atomic.LoadUintptr(&t.head().text))
		st.Slots += t.slots()
	})
	if len(m.dirs) > 0 {
		st.Directory = 1 << depthOf(m.dir.Load())
	}
	for class, tables := range m.spare {
		st.Spare += len(tables) * int(m.sharedBytes(uintptr(class)))
	}
	return st
}
