// Iterate: iterators in key order.
//
// An iterator walks the linked list of leaves. If the loop has inserted or deleted an entry, the
// iterator searches for its last key and goes on behind it.

package btree

import (
	"iter"
	"unsafe"
)

// All returns an iterator over all entries, by ascending keys. The package comment says how changes
// by the loop affect it.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		m.mustBeOpen("All")
		m.ascend(m.first(), 0, nil, yield)
	}
}

// From returns an iterator over the entries with key >= lo, by ascending keys.
func (m *Map[K, V]) From(lo K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		m.mustBeOpen("From")
		n, i := m.seek(lo)
		m.ascend(n, i, nil, yield)
	}
}

// Range returns an iterator over the entries with lo <= key < hi, by ascending keys. There are
// none unless lo < hi.
func (m *Map[K, V]) Range(lo, hi K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		m.mustBeOpen("Range")
		end := hi
		if m.texts {
			end = cloned(hi) // hi may be a key of the map, which the loop may delete
		}
		n, i := m.seek(lo)
		m.ascend(n, i, &end, yield)
	}
}

// Backward returns an iterator over all entries, by descending keys.
func (m *Map[K, V]) Backward() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		m.mustBeOpen("Backward")
		n, i := m.end()
		m.descend(n, i, yield)
	}
}

// BackwardFrom returns an iterator over the entries with key <= hi, by descending keys.
func (m *Map[K, V]) BackwardFrom(hi K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		m.mustBeOpen("BackwardFrom")
		n, i := m.seekBehind(hi)
		m.descend(n, i, yield)
	}
}

// seek returns the place of the first key that is not less than k. It may be the end of a leaf. n
// is nil if the map is empty.
func (m *Map[K, V]) seek(k K) (n *node, i int) {
	if m.root == nil {
		return nil, 0
	}
	n, i, _ = m.search.find(m, k)
	return n, i
}

// seekBehind is seek for the first key that is greater than k.
func (m *Map[K, V]) seekBehind(k K) (n *node, i int) {
	if m.root == nil {
		return nil, 0
	}
	n, i, found := m.search.find(m, k)
	if found {
		i++
	}
	return n, i
}

// end returns the place behind the last key. n is nil if the map is empty.
func (m *Map[K, V]) end() (n *node, i int) {
	if n = m.last(); n != nil {
		i = n.count()
	}
	return n, i
}

// An outcome is the reason why a walk over a leaf ended.
type outcome uint8

const (
	over    outcome = iota // the walk has yielded all entries
	stopped                // the loop has ended
	changed                // the loop has inserted or deleted an entry
)

// ascend yields the entries from index i of the leaf n on. Unless hi is nil, it stops before the
// key *hi.
func (m *Map[K, V]) ascend(n *node, i int, hi *K, yield func(K, V) bool) {
	var at savedKey[K]
	var p *path
	for n != nil {
		end := n.count()
		if hi != nil {
			end = max(m.lower(n, *hi), i)
		}
		last := end < n.count()
		switch m.up(n, i, end, &at, yield) {
		case stopped:
			return
		case changed:
			n, i = m.seekBehind(at.key())
			p = nil
			continue
		}
		if last {
			return
		}
		if n, i = m.next(n, &p), 0; n != nil {
			m.leaf.touch(n, m.linked(n.next))
		}
	}
}

// up yields the entries of the leaf n from index i up to end. If the loop has changed the map, it
// sets at and stops.
func (m *Map[K, V]) up(n *node, i, end int, at *savedKey[K], yield func(K, V) bool) outcome {
	version := m.version
	values := valuesOf[V](&m.leaf, n)[i:end]
	if m.texts {
		for j := range values {
			k := m.key(n, i+j)
			at.keep(k)
			if !yield(k, values[j]) {
				return stopped
			}
			if m.version != version {
				return changed
			}
		}
		return over
	}
	keys := keysOf[K](&m.leaf, n)[i:end]
	for j, k := range keys {
		if !yield(k, values[j]) {
			return stopped
		}
		if m.version != version {
			at.k = k
			return changed
		}
	}
	return over
}

// descend yields the entries before index i of the leaf n, the last one first.
func (m *Map[K, V]) descend(n *node, i int, yield func(K, V) bool) {
	var at savedKey[K]
	var p *path
	for n != nil {
		switch m.down(n, i, &at, yield) {
		case stopped:
			return
		case changed:
			n, i = m.seek(at.key())
			p = nil
			continue
		}
		if n = m.prev(n, &p); n != nil {
			m.leaf.touch(n, m.linked(n.prev))
			i = n.count()
		}
	}
}

// down is up in the other direction: it begins with the entry before index i.
func (m *Map[K, V]) down(n *node, i int, at *savedKey[K], yield func(K, V) bool) outcome {
	version := m.version
	values := valuesOf[V](&m.leaf, n)
	if m.texts {
		for i--; i >= 0; i-- {
			k := m.key(n, i)
			at.keep(k)
			if !yield(k, values[i]) {
				return stopped
			}
			if m.version != version {
				return changed
			}
		}
		return over
	}
	keys := keysOf[K](&m.leaf, n)
	for i--; i >= 0; i-- {
		k := keys[i]
		if !yield(k, values[i]) {
			return stopped
		}
		if m.version != version {
			at.k = k
			return changed
		}
	}
	return over
}

// A savedKey is a key at which a walk goes on after a change of the map. A string is copied, since
// the change may free the map's copy.
type savedKey[K any] struct {
	k     K
	bytes []byte
}

// keep copies k, a string.
func (p *savedKey[K]) keep(k K) { p.bytes = append(p.bytes[:0], stringOf(&k)...) }

func (p *savedKey[K]) key() K {
	if p.bytes != nil {
		s := unsafe.String(unsafe.SliceData(p.bytes), len(p.bytes))
		return *(*K)(unsafe.Pointer(&s))
	}
	return p.k
}
