// Rank: an order-statistic tree, which finds entries by their index in the order of keys.
//
// With Options.Ranks an inner node has a size for each child: the number of entries below the
// child.
//
//	inner   | count | keys ... | children, one more | sizes, one more |
//
// Code that copies or moves children also copies their sizes. An insert or a delete changes the
// sizes on the path to its leaf. Splits and joins sum up the sizes of the nodes that they change.

package btree

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
)

// GetAt returns the entry with the given index in the order of keys, and whether there is one. The
// least key has index 0. It takes O(log n) time. It panics if Options.Ranks is not set.
func (m *Map[K, V]) GetAt(index int) (k K, v V, ok bool) {
	m.mustHaveRanks("GetAt")
	if index < 0 || index >= m.length {
		return k, v, false
	}
	n := m.root
	for level := m.height; level > 1; level-- {
		i := 0
		for i < n.count() && index >= *m.inner.size(n, i) {
			index -= *m.inner.size(n, i)
			i++
		}
		n = m.child(n, i)
	}
	if index >= n.count() { // only if compare contradicts itself: see countNew
		return k, v, false
	}
	return m.key(n, index), *m.value(n, index), true
}

// Rank returns the number of keys that are less than k, and whether k is in the map. If it is, the
// number is k's index. It takes O(log n) time. It panics if Options.Ranks is not set.
func (m *Map[K, V]) Rank(k K) (index int, found bool) {
	m.mustHaveRanks("Rank")
	if m.root == nil {
		return 0, false
	}
	n := m.root
	for level := m.height; level > 1; level-- {
		i := m.search.upper(m, &m.inner, n, k)
		index += m.sum(n, i)
		n = m.child(n, i)
	}
	i := m.lower(n, k)
	return index + i, i < n.count() && m.compare(m.key(n, i), k) == 0
}

func (m *Map[K, V]) mustHaveRanks(call string) {
	m.mustBeOpen(call)
	if !m.ranks {
		arg.Panicf("btree.Map."+call, "Options.Ranks is not set")
	}
}

// size returns a pointer to the size of child i of the inner node n.
func (l *layout) size(n *node, i int) *int {
	return (*int)(n.at(l.sizes + uintptr(i)*unsafe.Sizeof(0)))
}

// sizesOf returns the sizes of children i to i+count-1 of the inner node n.
func (l *layout) sizesOf(n *node, i, count int) []int { return unsafe.Slice(l.size(n, i), count) }

// sum returns the sum of the sizes of the first i children of the inner node n.
func (m *Map[K, V]) sum(n *node, i int) (sum int) {
	for _, size := range m.inner.sizesOf(n, 0, i) {
		sum += size
	}
	return sum
}

// addToSizes adds change, which may be negative, to the size of each child on p.
func (m *Map[K, V]) addToSizes(p *path, change int) {
	if m.ranks {
		for level := 1; level < m.height; level++ {
			*m.inner.size(p[level].n, p[level].i) += change
		}
	}
}

// countNew adds 1 to the sizes above the leaf n, for its new key k. If compare panics, no size has
// changed. If compare contradicts itself, k is counted on the path to another leaf.
func (m *Map[K, V]) countNew(n *node, k K) {
	var p path
	isLast := !m.cloned && n.next == 0
	at := m.root
	for level := m.height - 1; level > 0; level-- {
		i := at.count()
		if !isLast {
			i = m.search.upper(m, &m.inner, at, k)
		}
		p[level] = step{at, i}
		at = m.child(at, i)
	}
	m.addToSizes(&p, 1)
}

// setSize sets the size of child i of n, an inner node on the given level, to the number of
// entries below the child.
func (m *Map[K, V]) setSize(n *node, i, level int) {
	if m.ranks {
		child := m.child(n, i)
		size := child.count()
		if level > 1 {
			size = m.sum(child, child.count()+1)
		}
		*m.inner.size(n, i) = size
	}
}
