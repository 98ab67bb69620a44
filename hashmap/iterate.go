// Iteration: through the tables in the order of the top bits of the hash, from a random one on.

package hashmap

import (
	"iter"
	"math/rand/v2"
	"unsafe"

	"github.com/freehold-go/freehold/internal/prefetch"
)

// All yields each entry once, in no particular order. A loop begins at a random group of 16 slots,
// so loops have different orders, but the order within a group is fixed: to vary it too would take
// a fifth of the loop's time. So the loops over a map of one group, with up to 16 entries, all have
// the same order. The loop may change the map, as with Go's map: an entry that is deleted before
// the loop reaches it is not yielded, and an entry that is added may or may not be yielded. Clear
// and Close end the loop. Strings and bytes are the map's memory.
//
// If the loop's current table grows, the parent provides a copy of it until the loop leaves it. An
// iterator of [iter.Pull] frees the copy when it is stopped.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		m.mustBeOpen("All")
		if m.len == 0 {
			return
		}
		cur := &cursor{}
		m.add(cur)
		defer m.drop(cur)
		from, _ := m.span(rand.Uint64())
		first := from << (m.shift & 63)
		for h := first; ; {
			_, to := m.span(h)
			next := to << (m.shift & 63)
			m.enter(cur, h)
			if !m.walk(cur, yield) || cur.ended || next == first {
				return
			}
			h = next
		}
	}
}

// Keys yields the keys, as All does.
func (m *Map[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		m.All()(func(k K, _ V) bool { return yield(k) })
	}
}

// Values yields the values, as All does.
func (m *Map[K, V]) Values() iter.Seq[V] {
	return func(yield func(V) bool) {
		m.All()(func(_ K, v V) bool { return yield(v) })
	}
}

// aheadGroups is how far an iteration prefetches, in groups.
const aheadGroups = 4

// prefetchGroup prefetches the slots of the group with the given number, counted cyclically.
func (c *core) prefetchGroup(t table, i uintptr) {
	if i >= t.groups() {
		i -= t.groups()
	}
	prefetch.Lines(uintptr(t.at(&c.layout, i, 0).key)-c.keys, int(min((c.groupBytes+lineBytes-1)/lineBytes, 8)))
}

// walk yields the entries of cur's table, and reports whether to go on. A table is in several pages,
// where the processor's own prefetches end, so walk prefetches the slots of a large map.
func (m *Map[K, V]) walk(cur *cursor, yield func(K, V) bool) bool {
	n := cur.table.groups()
	i := uintptr(rand.Uint64N(uint64(n)))
	large := n >= aheadGroups && uintptr(m.slots)*m.groupBytes/groupSlots >= m.huge.from
	for ahead := uintptr(0); large && ahead < aheadGroups; ahead++ {
		m.prefetchGroup(cur.table, i+ahead)
	}
	for range n {
		if large {
			m.prefetchGroup(cur.table, i+aheadGroups)
		}
		entries := cur.table.full(i)
		if !m.owned { // without the calls and branches of the loop below
			at := cur.table.at(&m.layout, i, 0)
			for ; entries != 0 && !cur.detached; entries &= entries - 1 {
				slot := first(entries)
				if *tagIn(at.tags, slot) == 0 { // deleted by yield
					continue
				}
				key := unsafe.Add(at.key, slot*keyStepOf[K, V]())
				if !yield(*(*K)(key), *valueIn[K, V](key, slot)) || cur.ended {
					return false
				}
			}
		}
		for ; entries != 0; entries &= entries - 1 {
			at := cur.table.at(&m.layout, i, first(entries)) // yield may detach cur
			switch {
			case *tagIn(at.tags, at.slot) == 0: // deleted by yield
			case m.pairs && !cur.detached:
				k, r := *new(K), *refIn(at)
				*(*string)(unsafe.Pointer(&k)) = r.pairKey()
				if !yield(k, viewOf[V](m.valueKind, r.pairValue())) || cur.ended {
					return false
				}
			default:
				k, v, ok := m.entryAt(cur, i, at)
				if ok && !yield(k, v) || cur.ended {
					return false
				}
			}
		}
		i = cur.table.after(i)
	}
	return true
}

// entryAt returns the entry of a slot of group i of cur's table, and whether the map still has it.
func (m *Map[K, V]) entryAt(cur *cursor, i uintptr, at spot) (k K, v V, ok bool) {
	if m.hash.kind == stringKeys {
		r := *refIn(at)
		if cur.detached {
			h := *m.hashIn(cur.table, i, at.slot)
			if at, ok = m.findRef(m.tableOf(h), r, h); !ok {
				return k, v, false
			}
		}
		*(*string)(unsafe.Pointer(&k)) = m.keyOf(r)
		return k, m.load(at), true
	}
	k = *(*K)(at.key)
	if cur.detached && k == k { // a NaN cannot have changed or been deleted
		h := *m.hashIn(cur.table, i, at.slot)
		if m.owned {
			at, ok = find[K, ref](&m.core, &k, h)
		} else {
			at, ok = find[K, V](&m.core, &k, h)
		}
		if !ok {
			return k, v, false
		}
		k = *(*K)(at.key)
	}
	return k, m.load(at), true
}
