// Iteration: through the tables in the order of the top bits of the hash, from a random one on.

package hashmap

import (
	"iter"
	"math/rand/v2"
	"unsafe"
)

// All yields each entry once, in no particular order. A loop begins at a random group of 7 slots,
// so loops have different orders, but the order within a group is fixed: to vary it too would take
// a fifth of the loop's time. The loop may change the map, as with Go's map: an entry that is
// deleted before the loop reaches it is not yielded, and an entry that is added may or may not be
// yielded. Clear and Close end the loop. Strings and bytes are the map's memory.
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

// walk yields the entries of cur's table, and reports whether to go on.
func (m *Map[K, V]) walk(cur *cursor, yield func(K, V) bool) bool {
	first := rand.Uint64()
	n := cur.table.groups()
	for i := range n {
		at := (i + uintptr(first)) & (n - 1)
		for done := uint64(0); ; {
			g := cur.table.group(at, m.stride) // in each round, as yield may detach cur
			full := matchFull(*tagsAt(g)) &^ done
			if full == 0 {
				break
			}
			done = full ^ (full - 1)
			slot := slotOf(full)
			switch {
			case cur.detached || m.owned && !m.pairs:
				k, v, ok := m.entryAt(cur, at, slot)
				if ok && !yield(k, v) || cur.ended {
					return false
				}
			case m.pairs:
				k, r := *new(K), *refIn(g, slot)
				*(*string)(unsafe.Pointer(&k)) = r.pairKey()
				if !yield(k, viewOf[V](m.valueKind, r.pairValue())) || cur.ended {
					return false
				}
			default:
				if !yield(*keyIn[K](g, slot), *valueIn[K, V](g, slot)) || cur.ended {
					return false
				}
			}
		}
	}
	return true
}

// entryAt returns the entry of a slot of cur's table, and whether the map still has it.
func (m *Map[K, V]) entryAt(cur *cursor, i, slot uintptr) (k K, v V, ok bool) {
	g := cur.table.group(i, m.stride)
	if m.hash.kind == stringKeys {
		r := *refIn(g, slot)
		if cur.detached {
			h := *m.hashIn(cur.table, i, slot)
			if g, slot = m.findRef(m.tableOf(h), r, h); g == nil {
				return k, v, false
			}
		}
		*(*string)(unsafe.Pointer(&k)) = m.keyOf(r)
		return k, m.load(g, slot), true
	}
	k = *keyIn[K](g, slot)
	if cur.detached && k == k { // a NaN cannot have changed or been deleted
		h := *m.hashIn(cur.table, i, slot)
		if m.owned {
			g, slot = find[K, ref](&m.core, &k, h)
		} else {
			g, slot = find[K, V](&m.core, &k, h)
		}
		if g == nil {
			return k, v, false
		}
		k = *keyIn[K](g, slot)
	}
	return k, m.load(g, slot), true
}
