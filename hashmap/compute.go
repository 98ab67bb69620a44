// Compute: a change that a function decides about.

package hashmap

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/container"
)

// Compute calls f with the value of k, or with a zero value if k is absent, and does the
// [freehold.Change] that f returns. Store sets the value to *v, and inserts k if it is absent.
// Remove deletes k. Keep undoes what f did to *v. Compute returns the value that k had before the
// call, and whether k was in the map. If V is string or []byte, f gets a copy, and old is the same
// copy.
//
// v is valid until f returns. f may read the map; a call in it that changes the map panics. If f
// panics, the map is as before. The error matches [freehold.ErrOutOfMemory], and comes only after f
// returned Store; the map is then unchanged.
func (m *Map[K, V]) Compute(k K, f func(v *V, found bool) freehold.Change) (old V, found bool, err error) {
	m.mustBeWritable("Compute")
	var v *V
	if !m.views() {
		v = m.At(k)
	}
	inPlace := v != nil
	if inPlace {
		old, found = *v, true
	} else {
		v = new(V)
		if m.views() {
			if old, found = m.Get(k); found {
				old = copyOf[V](m.valueKind, textOf(m.valueKind, &old))
			}
			*v = old
		}
	}
	switch change := container.Lent(&m.base, &mapKind, v, found, f); {
	case change == freehold.Store && !inPlace:
		err = m.Put(k, *v)
	case change == freehold.Remove && found:
		m.Delete(k)
	}
	return old, found, err
}

// Compute calls f under the lock of k's table, with a pointer to a copy of the value of k, or to a
// zero value if k is absent, and does the [freehold.Change] that f returns. Store sets the value to
// *v, and inserts k if it is absent. Remove deletes k, and Keep changes nothing. Compute returns
// the value that k had before the call, and whether k was in the map. If V is []byte, old has the
// same bytes as the slice that f gets. Other calls see the entry before or after the change, and no
// other call changes k in between. Errors are as for [Shared.Put], possibly before f has been
// called or if it would not have returned Store; the map is then unchanged.
//
// f must not use the map: that would deadlock. v is valid until f returns. If f panics, the map is
// unchanged.
func (m *Shared[K, V]) Compute(k K, f func(v *V, found bool) freehold.Change) (old V, found bool, err error) {
	err = m.change("Compute", k, func(v *V, there bool) freehold.Change {
		old, found = *v, there
		return container.Asked(&sharedKind, v, there, f)
	})
	return old, found, err
}

// ComputeBytes is [Map.Compute] with a key given as bytes, which the map copies if it is new.
func ComputeBytes[K ~string, V any](m *Map[K, V], key []byte, f func(v *V, found bool) freehold.Change) (old V, found bool, err error) {
	return m.Compute(keyOf[K](key), f)
}

// ComputeSharedBytes is [Shared.Compute] with a key given as bytes, which the map copies if it is
// new.
func ComputeSharedBytes[K ~string, V any](m *Shared[K, V], key []byte, f func(v *V, found bool) freehold.Change) (old V, found bool, err error) {
	return m.Compute(keyOf[K](key), f)
}
