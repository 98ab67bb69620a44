// Search: the descent from the root to a key.
//
// In each node the search counts the keys that are at most k. In an inner node the count is the
// index of the next child. In a leaf the last counted key is k, if k is in the map.
//
// Ordered keys are compared eight at a time without branches: a binary search would mispredict a
// branch at every other step.

package btree

import (
	"cmp"
	"unsafe"
)

// A search has the functions that find keys of one kind: ordered keys, strings, or keys with a
// compare function.
type search[K, V any] struct {
	// find returns the leaf and the index of k, or where to insert it. m is not empty.
	find func(m *Map[K, V], k K) (n *node, i int, found bool)

	// upper returns the number of keys of n, of layout l, that are at most k.
	upper func(m *Map[K, V], l *layout, n *node, k K) int
}

func orderedSearch[K cmp.Ordered, V any]() search[K, V] {
	return search[K, V]{findOrdered[K, V], upperOrdered[K, V]}
}

func funcSearch[K, V any]() search[K, V] {
	return search[K, V]{findFunc[K, V], upperFunc[K, V]}
}

func findOrdered[K cmp.Ordered, V any](m *Map[K, V], k K) (*node, int, bool) {
	n := m.root
	for level := m.height; level > 1; level-- {
		n = m.child(n, upper(n.at(m.inner.keys), n.count(), k))
	}
	m.leaf.prefetch(n)
	keys := n.at(m.leaf.keys)
	i := upper(keys, n.count(), k)
	if i > 0 {
		if last := *(*K)(unsafe.Add(keys, uintptr(i-1)*unsafe.Sizeof(k))); last == k || k != k {
			return n, i - 1, true
		}
	}
	return n, i, false
}

func upperOrdered[K cmp.Ordered, V any](m *Map[K, V], l *layout, n *node, k K) int {
	return upper(n.at(l.keys), n.count(), k)
}

// upper returns the number of the n ascending keys that are at most k. A NaN is less than any other
// key, so only a NaN is at most a NaN.
func upper[K cmp.Ordered](keys unsafe.Pointer, n int, k K) int {
	if k != k {
		if n > 0 && *(*K)(keys) != *(*K)(keys) {
			return 1
		}
		return 0
	}
	const step = 8
	if n < step {
		i := 0
		for i < n && !(*(*K)(unsafe.Add(keys, uintptr(i)*unsafe.Sizeof(k))) > k) {
			i++
		}
		return i
	}
	i := 0
	for i+step <= n && !(*(*K)(unsafe.Add(keys, uintptr(i+step-1)*unsafe.Sizeof(k))) > k) {
		i += step
	}
	i = min(i, n-step) // the last group may overlap the one before
	g := (*[step]K)(unsafe.Add(keys, uintptr(i)*unsafe.Sizeof(k)))
	return i + one(!(g[0] > k)) + one(!(g[1] > k)) + one(!(g[2] > k)) + one(!(g[3] > k)) +
		one(!(g[4] > k)) + one(!(g[5] > k)) + one(!(g[6] > k)) + one(!(g[7] > k))
}

// one returns 1 for true, without a branch.
func one(b bool) int {
	n := 0
	if b {
		n = 1
	}
	return n
}

func findFunc[K, V any](m *Map[K, V], k K) (*node, int, bool) {
	n := m.root
	for level := m.height; level > 1; level-- {
		n = m.child(n, upperFunc(m, &m.inner, n, k))
	}
	m.leaf.prefetch(n)
	i := upperFunc(m, &m.leaf, n, k)
	if i > 0 && m.compare(m.key(n, i-1), k) == 0 {
		return n, i - 1, true
	}
	return n, i, false
}

func upperFunc[K, V any](m *Map[K, V], l *layout, n *node, k K) int {
	keys, compare := keysOf[K](l, n), m.compare
	low, high := 0, len(keys)
	for low < high {
		mid := int(uint(low+high) / 2)
		if compare(keys[mid], k) <= 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// keySlot returns key i of n, which has layout l.
func (m *Map[K, V]) keySlot(l *layout, n *node, i int) *K {
	return (*K)(unsafe.Add(l.key(n, i), m.keyAt))
}

// key returns key i of the leaf n.
func (m *Map[K, V]) key(n *node, i int) K { return *m.keySlot(&m.leaf, n, i) }

// value returns value i of the leaf n.
func (m *Map[K, V]) value(n *node, i int) *V {
	var v V
	return (*V)(n.at(m.leaf.values + uintptr(i)*unsafe.Sizeof(v)))
}

// child returns child i of the inner node n.
func (m *Map[K, V]) child(n *node, i int) *node { return m.inner.child(n, i).pointer() }

// first returns the leaf with the least key, or nil.
func (m *Map[K, V]) first() *node {
	n := m.root
	for level := m.height; level > 1; level-- {
		n = m.child(n, 0)
	}
	return n
}

// last returns the leaf with the greatest key, or nil.
func (m *Map[K, V]) last() *node {
	n := m.root
	for level := m.height; level > 1; level-- {
		n = m.child(n, n.count())
	}
	return n
}

// A path leads from a leaf, path[0], to the root. Each step is a node and an index: the child that
// the path comes from, or in the leaf an entry.
type path [maxHeight]step

type step struct {
	n *node
	i int
}

// trace sets p to the path to the leaf of k. p[0].i is the index of k, or where to insert it.
func (m *Map[K, V]) trace(p *path, k K) {
	n := m.root
	for level := m.height - 1; level > 0; level-- {
		i := m.search.upper(m, &m.inner, n, k)
		p[level] = step{n, i}
		n = m.child(n, i)
	}
	m.leaf.prefetch(n)
	p[0] = step{n, m.lower(n, k)}
}

// forward makes p lead to the first entry of the next leaf. It reports false if there
// is none.
func (m *Map[K, V]) forward(p *path) bool {
	level := 1
	for level < m.height && p[level].i == p[level].n.count() {
		level++
	}
	if level >= m.height {
		return false
	}
	p[level].i++
	for ; level > 0; level-- {
		p[level-1] = step{n: m.child(p[level].n, p[level].i)}
	}
	return true
}

// backward makes p lead to the first entry of the leaf before. It reports false if there is none.
func (m *Map[K, V]) backward(p *path) bool {
	level := 1
	for level < m.height && p[level].i == 0 {
		level++
	}
	if level >= m.height {
		return false
	}
	p[level].i--
	for ; level > 0; level-- {
		p[level-1] = step{n: m.child(p[level].n, p[level].i)}
		if level > 1 {
			p[level-1].i = p[level-1].n.count()
		}
	}
	return true
}

// isLast reports whether the node of p on the given level is the last one of its level.
func (m *Map[K, V]) isLast(p *path, level int) bool {
	for level++; level < m.height; level++ {
		if p[level].i < p[level].n.count() {
			return false
		}
	}
	return true
}

// lower returns the number of keys of the leaf n that are less than k.
func (m *Map[K, V]) lower(n *node, k K) int {
	i := m.search.upper(m, &m.leaf, n, k)
	if i > 0 && m.compare(m.key(n, i-1), k) == 0 {
		i--
	}
	return i
}
