// Registry: from a number to an arena, from anywhere.
//
//	ID    | serial, 40 bits | slot, 24 bits |
//	                             |
//	table      [ . | member | . | member | nil ]
//
// Serials are of the whole process and never used again, so an ID names one
// membership of one arena in one registry, for ever.

package arena

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// An ID names an arena in the [Registry] that gave it. It is a number, which may
// be stored off-heap. 0 is no ID.
type ID uint64

const (
	slotBits   = 24
	maxMembers = 1 << slotBits
	maxSerial  = 1<<(64-slotBits) - 1
)

// serials counts the IDs that all registries have given.
var serials atomic.Uint64

// Registry finds arenas by ID. The zero Registry is empty and ready. It is safe
// for concurrent use, though an arena that it finds is not: the finder must
// know that its owner does not use it at the time, by a lock or a hand-over.
type Registry struct {
	mu    sync.Mutex // held by those who change what follows
	free  []int      // slots without a member
	table atomic.Pointer[[]atomic.Pointer[membership]]
}

// A membership is an arena's time in a registry.
type membership struct {
	id       ID
	arena    *Arena
	name     string
	registry *Registry

	// What the arena's owner has last told; see publish.
	used     atomic.Int64
	reserved atomic.Int64
}

// Add gives a an ID, by which Find returns it until Remove or a.Close. The name
// is for Summary. Add must be called by a's owner. It panics if a is closed, or
// in a registry already.
//
// IDs are never used again, in no registry. A registry has room for 16,777,216
// arenas at once, and a process for 2^40 Adds: beyond that Add panics.
func (r *Registry) Add(name string, a *Arena) ID {
	a.mustBeOpen("Add")
	if a.member != nil {
		panic(fmt.Sprintf("freehold: arena: Add of an arena that is in a registry already, as %q", a.member.name))
	}
	serial := serials.Add(1)
	if serial > maxSerial {
		panic("freehold: arena: no more IDs")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.free) == 0 {
		r.grow()
	}
	last := len(r.free) - 1
	slot := r.free[last]
	r.free = r.free[:last]
	m := &membership{id: ID(serial<<slotBits | uint64(slot)), arena: a, name: name, registry: r}
	a.member = m
	a.publish()
	(*r.table.Load())[slot].Store(m)
	return m.id
}

// grow makes room in the table.
func (r *Registry) grow() {
	var old []atomic.Pointer[membership]
	if t := r.table.Load(); t != nil {
		old = *t
	}
	if len(old) >= maxMembers {
		panic(fmt.Sprintf("freehold: arena: more than %d arenas in a registry", maxMembers))
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

// Find returns the arena that id was given for. It reports false if the arena
// was removed or closed, and for a number that this registry never gave: 0, an
// ID from another registry. It takes no lock, and some 2 ns.
func (r *Registry) Find(id ID) (*Arena, bool) {
	if m := r.find(id); m != nil {
		return m.arena, true
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

// Remove ends an ID, as Close of its arena does, and reports whether Find would
// have returned the arena. It must be called by the arena's owner.
func (r *Registry) Remove(id ID) bool {
	m := r.find(id)
	if m != nil {
		m.end()
	}
	return m != nil
}

// end takes the arena out of its registry.
func (m *membership) end() {
	r := m.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	slot := int(m.id % maxMembers)
	(*r.table.Load())[slot].Store(nil)
	r.free = append(r.free, slot)
	m.arena.member = nil
}

// publish tells the arena's registry its figures.
func (a *Arena) publish() {
	if m := a.member; m != nil {
		m.used.Store(int64(a.usedBytes()))
		m.reserved.Store(int64(a.reserved))
	}
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

// Summary lists the arenas in the registry, one a line, those that hold the most
// memory first, and their sum:
//
//	     id         used     reserved  name
//	1000000         4196        12288  request
//	  total         4196        12288  1 arenas
//
// The figures are in bytes. They are those of the moment when the arena last
// took a chunk into use or ended blocks in more than one, for its owner may be
// using it now.
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
				l := line{m.id, m.name, m.used.Load(), m.reserved.Load()}
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
		fmt.Fprintf(&b, row, fmt.Sprintf("%x", uint64(l.id)), l.used, l.reserved, l.name)
	}
	fmt.Fprintf(&b, row, "total", total.used, total.reserved, fmt.Sprintf("%d arenas", len(lines)))
	return b.String()
}
