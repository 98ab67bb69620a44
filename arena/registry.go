// Registry: a table of arenas by number.
//
//	ID    | serial, 40 bits | slot, 24 bits |
//	                             |
//	table      [ . | member | . | member | nil ]
//
// Serials are unique in the process and never reused, so an ID names one
// membership of one arena in one registry.

package arena

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/arg"
)

// An ID names an arena in the [Registry] that returned it. It is a number, so it
// may be stored off-heap. 0 is no ID.
type ID uint64

const (
	slotBits   = 24
	maxMembers = 1 << slotBits
	maxSerial  = 1<<(64-slotBits) - 1
)

// serials counts the IDs of all registries.
var serials atomic.Uint64

// Registry finds arenas by ID. The zero Registry is empty and ready. It is safe
// for concurrent use, but an [Arena] found in it is not: the caller of Find must
// exclude the arena's owner, by a lock or a hand-over.
type Registry struct {
	mu    sync.Mutex // guards free and changes of table
	free  []int      // slots without a member
	table atomic.Pointer[[]atomic.Pointer[membership]]
}

// A membership is an arena's entry in a registry.
type membership struct {
	id       ID
	arena    *Arena  // or nil
	shared   *Shared // or nil
	name     string
	registry *Registry

	// The figures of an Arena that its owner last published.
	used     atomic.Int64
	reserved atomic.Int64
}

// Add returns a new ID for a. Find of the ID returns a until Remove or a.Close. The name is for
// Summary. Only a's owner may call Add. It panics if a is nil, closed or in a registry already.
//
// IDs are never reused, in any registry. Add panics beyond 16,777,216 arenas at
// once in a registry, and beyond 2^40 Adds in a process.
func (r *Registry) Add(name string, a *Arena) ID {
	const call = "arena.Registry.Add"
	if a == nil {
		arg.Panicf(call, "a is nil")
	}
	a.mustBeOpen(call)
	m := &membership{arena: a, name: name, registry: r}
	m.mustFollow(call, a.member)
	m.tell(a)
	r.add(call, m)
	a.member = m
	return m.id
}

// AddShared is Add for a [Shared]; FindShared finds it. Any goroutine may call
// it.
func (r *Registry) AddShared(name string, s *Shared) ID {
	const call = "arena.Registry.AddShared"
	if s == nil {
		arg.Panicf(call, "s is nil")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustBeOpen(call)
	m := &membership{shared: s, name: name, registry: r}
	m.mustFollow(call, s.member)
	r.add(call, m)
	s.member = m
	return m.id
}

// mustFollow panics if the arena of m has another membership.
func (m *membership) mustFollow(call string, other *membership) {
	if other != nil {
		arg.Panicf(call, "the arena is in a registry already, as %q", other.name)
	}
}

// add assigns m an ID and a slot.
func (r *Registry) add(call string, m *membership) {
	serial := serials.Add(1)
	if serial > maxSerial {
		arg.Panicf(call, "the process has given all of its IDs")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.free) == 0 {
		r.grow(call)
	}
	last := len(r.free) - 1
	slot := r.free[last]
	r.free = r.free[:last]
	m.id = ID(serial<<slotBits | uint64(slot))
	(*r.table.Load())[slot].Store(m)
}

// grow doubles the table.
func (r *Registry) grow(call string) {
	var old []atomic.Pointer[membership]
	if t := r.table.Load(); t != nil {
		old = *t
	}
	if len(old) >= maxMembers {
		arg.Panicf(call, "the registry has %d arenas, want fewer", maxMembers)
	}
	table := make([]atomic.Pointer[membership], min(max(2*len(old), 16), maxMembers))
	for i := range old {
		table[i].Store(old[i].Load())
	}
	for slot := len(table) - 1; slot >= len(old); slot-- {
		r.free = append(r.free, slot)
	}
	r.table.Store(&table)
}

// Find returns the [Arena] with the given ID. It reports false if the arena was
// removed or closed, and for any number that Add of this registry did not return:
// 0, an ID from another registry or from AddShared. It takes no lock
// (BenchmarkFind).
func (r *Registry) Find(id ID) (*Arena, bool) {
	if m := r.find(id); m != nil {
		return m.arena, m.arena != nil
	}
	return nil, false
}

// FindShared is Find for a [Shared] and the IDs from AddShared.
func (r *Registry) FindShared(id ID) (*Shared, bool) {
	if m := r.find(id); m != nil {
		return m.shared, m.shared != nil
	}
	return nil, false
}

func (r *Registry) find(id ID) *membership {
	table := r.table.Load()
	if table == nil {
		return nil
	}
	slot := int(id % maxMembers)
	if slot >= len(*table) {
		return nil
	}
	if m := (*table)[slot].Load(); m != nil && m.id == id {
		return m
	}
	return nil
}

// Remove invalidates an ID, as Close of its arena does, and reports whether the
// ID was valid. For an [Arena] only the arena's owner may call it.
func (r *Registry) Remove(id ID) bool {
	m := r.find(id)
	switch {
	case m == nil:
		return false
	case m.arena != nil:
		m.arena.member = nil
	default:
		m.shared.forget(m)
	}
	return m.end()
}

// end removes the arena from its registry, and reports whether it was a member.
func (m *membership) end() bool {
	r := m.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	slot := int(m.id % maxMembers)
	if !(*r.table.Load())[slot].CompareAndSwap(m, nil) {
		return false // a concurrent Remove or Close was first
	}
	r.free = append(r.free, slot)
	return true
}

// forget clears s.member if it is m.
func (s *Shared) forget(m *membership) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.member == m {
		s.member = nil
	}
}

// leaveRegistry ends the arena's membership, if it has one.
func (a *Arena) leaveRegistry() {
	if m := a.member; m != nil {
		a.member = nil
		m.end()
	}
}

// publish updates the arena's figures in its registry.
func (a *Arena) publish() {
	if a.member != nil {
		a.member.tell(a)
	}
}

// tell copies the figures of a to m.
func (m *membership) tell(a *Arena) {
	m.used.Store(int64(a.usedBytes()))
	m.reserved.Store(int64(a.reserved))
}

// figures returns the bytes in use and the bytes in chunks.
func (m *membership) figures() (used, reserved int64) {
	if m.shared != nil {
		return m.shared.figures()
	}
	return m.used.Load(), m.reserved.Load()
}

// figures returns the bytes in chunks with blocks, and in all chunks. It does not
// stop the world.
func (s *Shared) figures() (used, reserved int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.reserved - s.spareBytes() - s.retiredBytes()), int64(s.reserved)
}

// Len returns the number of arenas in the registry.
func (r *Registry) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	table := r.table.Load()
	if table == nil {
		return 0
	}
	return len(*table) - len(r.free)
}

// Summary lists the arenas in the registry, one per line, by descending memory,
// and their sum:
//
//	     id         used     reserved  name
//	1000000         4196        12288  "request"
//	  total         4196        12288  1 arena
//
// The figures are in bytes. Since its owner may be using it now, an [Arena]'s figures are from the
// last time that it took a chunk into use or ended blocks in more than one. A [Shared] counts each
// chunk with blocks as used whole.
func (r *Registry) Summary() string {
	type line struct {
		id             ID
		name           string
		used, reserved int64
	}
	var lines []line
	total := line{}
	if table := r.table.Load(); table != nil {
		for i := range *table {
			if m := (*table)[i].Load(); m != nil {
				l := line{id: m.id, name: m.name}
				l.used, l.reserved = m.figures()
				lines = append(lines, l)
				total.used += l.used
				total.reserved += l.reserved
			}
		}
	}
	slices.SortFunc(lines, func(x, y line) int {
		return cmp.Or(cmp.Compare(y.reserved, x.reserved), cmp.Compare(x.id, y.id))
	})
	var b strings.Builder
	const row = "%16s %12v %12v  %s\n"
	fmt.Fprintf(&b, row, "id", "used", "reserved", "name")
	for _, l := range lines {
		fmt.Fprintf(&b, row, fmt.Sprintf("%x", uint64(l.id)), l.used, l.reserved, strconv.Quote(l.name))
	}
	count := "1 arena"
	if len(lines) != 1 {
		count = fmt.Sprintf("%d arenas", len(lines))
	}
	fmt.Fprintf(&b, row, "total", total.used, total.reserved, count)
	return b.String()
}
