// Compute: a change that a function decides about.

package btree

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/container"
)

// Compute calls f with the value of k, or with a zero value if k is absent, and does the
// [freehold.Change] that f returns. Store sets the value to *v, and inserts k if it is absent.
// Remove deletes k. Keep undoes what f did to *v. Compute returns the value that k had before the
// call, and whether k was in the map.
//
// v is valid until f returns. f may read the map; a call in it that changes the map panics. If f
// panics, the map is as before. The error matches [freehold.ErrOutOfMemory], and comes only after f
// returned Store for an absent key; the map is then unchanged. If the map has clones, it may come
// for other keys and changes too.
func (m *Map[K, V]) Compute(k K, f func(v *V, found bool) freehold.Change) (old V, found bool, err error) {
	n, i, found, err := m.findOwn("Compute", k)
	if err != nil {
		return old, false, err
	}
	v := m.absent
	if found {
		v = m.value(n, i)
		old = *v
	} else if v == nil {
		v = new(V)
		m.absent = v // one for all calls: it is on the Go heap, since f may keep it
	} else {
		*v = old
	}
	change := container.Lent(&m.base, &mapKind, v, found, f)
	switch {
	case change == freehold.Remove && found:
		err = m.deleteAt(n, i)
	case change == freehold.Store && !found:
		if n, i, err = m.insert(n, i, k); err == nil {
			*m.value(n, i) = *v
		}
	}
	return old, found, err
}

// Take deletes the entry of k, as [Map.Delete] does. It returns the value that the entry had, and
// whether there was one.
func (m *Map[K, V]) Take(k K) (v V, found bool) {
	n, i, found := m.find("Take", k)
	if found {
		v = *m.value(n, i)
		m.mustOwn("Take", m.deleteAt(n, i))
	}
	return v, found
}
