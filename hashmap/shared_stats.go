// Counts and checks of a Shared.

package hashmap

import (
	"log/slog"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/statlog"
)

// SharedStats is a snapshot of a Shared.
type SharedStats struct {
	Name      string // Options.Name
	Len       int    // entries
	Slots     int    // entries for which tables have slots; beyond 11/16 of them tables grow
	Tables    int
	Directory int // entries of the directory
	Reserved  int // bytes from the parent: tables, directories and Text
	Spare     int // of Reserved: tables that wait for reuse
	Text      int // of Reserved: blocks of strings, bytes and large values, with those that readers may still use
}

// Len returns the number of entries. It takes time in proportion to the tables, one for
// 300 to 600 entries of 16 bytes, during which no table grows. Beside writers it is
// approximate.
func (m *Shared[K, V]) Len() int { return m.Stats().Len }

// Stats returns the map's figures, in the time of Len. It may be called after Close.
func (m *Shared[K, V]) Stats() SharedStats {
	if m.dir.Load() == 0 {
		return SharedStats{}
	}
	m.limbo.mu.Lock()
	retired := m.limbo.bytes
	m.limbo.mu.Unlock()
	st := m.stats()
	st.Text += retired
	st.Reserved += st.Text
	return st
}

func (m *sharedTables) stats() SharedStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := SharedStats{Name: m.base.Name, Tables: m.tables, Reserved: m.reserved}
	m.each(func(e uintptr) {
		st.Len += int(atomic.LoadUintptr(&headOf(e).live))
		st.Text += int(atomic.LoadUintptr(&headOf(e).text))
		st.Slots += int(slotsPerGroup * groupsOf(e))
	})
	if len(m.dirs) > 0 {
		st.Directory = 1 << depthOf(m.dir.Load())
	}
	for class, tables := range m.spare {
		st.Spare += len(tables) * int(m.layout.stride<<class)
	}
	return st
}

// LogValue implements [slog.LogValuer]. It returns a group of all figures.
func (st SharedStats) LogValue() slog.Value { return statlog.Group(st, "Name") }

// LogValue implements [slog.LogValuer]. It returns that of Stats, and costs as much.
func (m *Shared[K, V]) LogValue() slog.Value { return statlog.Of(m, m.Stats) }

// check panics if a locked table breaks an invariant of shared_table.go.
func (m *Shared[K, V]) check(x held) {
	hd := headOf(x.e)
	live, text := uintptr(0), uintptr(0)
	m.eachSlot(x.e, func(g, slot unsafe.Pointer) {
		live++
		if !m.direct {
			text += textBytes(m.appendTexts(nil, slot)...)
		}
		h := m.hashAt(slot)
		if h != m.hashAt(slot) { // a NaN
			return
		}
		if _, at := m.lookUp(h); at != x.e {
			arg.Panicf("hashmap.Shared", "an entry with hash %#x is in table %#x, and the directory has %#x", h, x.e, at)
		}
		at := homeOf(h, groupsOf(x.e))
		for m.group(tableOf(x.e), at) != g {
			if *tagsAt(m.group(tableOf(x.e), at))&passBit(tagOf(h)) == 0 {
				arg.Panicf("hashmap.Shared", "the search for hash %#x ends in group %d before its entry", h, at)
			}
			at = (at + 1) % groupsOf(x.e)
		}
	})
	for i := range groupsOf(x.e) {
		if *versionOf(m.group(tableOf(x.e), i))&1 != 0 {
			arg.Panicf("hashmap.Shared", "the version of group %d is odd", i)
		}
	}
	if live != hd.live || text != hd.text || live+hd.left > roomOf(classOf(x.e)) {
		arg.Panicf("hashmap.Shared", "a table of class %d has %d entries with %d bytes of text; its head has %d with %d, and %d left",
			classOf(x.e), live, text, hd.live, hd.text, hd.left)
	}
}

// checkAll checks all tables.
func (m *Shared[K, V]) checkAll() {
	for pos, more := uint64(0), true; more; {
		pos, more = m.visit(pos, m.check)
	}
}

// A seamPoint is a step of a reader or a writer at which a test may act.
type seamPoint int

const (
	readDirectory seamPoint = iota
	readTable
	readVersion
	readEntry
	readTags
	readKey
	readValue
	readSlow // before the lock

	lookedUp // a table, which is not locked yet
	raised
	wroteKey
	wroteValue
	copied    // a table to those that replace it
	published // one entry of the directory
	deepened  // the directory, whose predecessor is not marked yet
)
