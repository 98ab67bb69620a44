// Delete: merging and rebalancing of B+ tree nodes.
//
// A node that is less than a third full is joined with a neighbour below the same parent. If the two
// fill at most three quarters of a node, they become one. Otherwise they share their entries equally.
// So several inserts or deletes pass before a joined node splits or joins again. Nothing here
// allocates, unless the map has clones.

package btree

import "github.com/freehold-go/freehold/internal/arg"

// Delete deletes the entry of k and reports whether there was one. It frees a node whenever two
// become one. An arena does not reuse freed blocks, so over an arena a map that shrinks and grows
// goes on taking memory.
func (m *Map[K, V]) Delete(k K) bool {
	n, i, found := m.find("Delete", k)
	if found {
		m.mustOwn("Delete", m.deleteAt(n, i))
	}
	return found
}

// DeleteRange deletes the entries with lo <= key < hi and returns their number. It visits only
// their leaves. To delete all keys less than hi, pass the key of Min as lo.
func (m *Map[K, V]) DeleteRange(lo, hi K) int {
	m.mustBeWritable("DeleteRange")
	before := m.length
	if m.texts {
		lo, hi = cloned(lo), cloned(hi) // they may be keys of the map, which are freed
	}
	for m.root != nil {
		var p path
		m.trace(&p, lo)
		if p[0].i == p[0].n.count() && !m.forward(&p) {
			break
		}
		n, i := p[0].n, p[0].i
		j := m.lower(n, hi)
		if j <= i {
			break
		}
		last := j < n.count()
		m.mustOwn("DeleteRange", m.remove(&p, j))
		if last {
			break
		}
	}
	return before - m.length
}

// DeleteFunc calls del for each entry, in order, and deletes the entry if del returns true. It
// returns the number of deleted entries. del may change *v, so one walk can change some values
// and delete other entries. del may read the map; a call in it that changes the map panics. If
// del panics, its deletions in earlier leaves stay.
func (m *Map[K, V]) DeleteFunc(del func(k K, v *V) bool) int {
	m.mustBeWritable("DeleteFunc")
	if del == nil {
		arg.Panicf("btree.Map.DeleteFunc", "del is nil")
	}
	m.base.Lend()
	defer func() { m.base.Back() }()
	before := m.length
	n := m.first()
	if n == nil {
		return 0
	}
	// del is called for a whole leaf before the leaf changes. Deletions may move the next key
	// to another leaf, so each round searches for it.
	k := m.key(n, 0)
	for judged := 0; judged < before; {
		var p path
		m.trace(&p, k)
		if p[0].i == p[0].n.count() {
			break // only if compare contradicts itself
		}
		m.mustOwn("DeleteFunc", m.ownToDelete(&p, p[0].n.count()-p[0].i))
		n, i := p[0].n, p[0].i
		var at *path
		next := m.next(n, &at)
		if next != nil {
			k = m.key(next, 0)
		}
		judged += n.count() - i
		var doomed [maxSlots]bool
		any := false
		for j := i; j < n.count(); j++ {
			doomed[j] = del(m.key(n, j), m.value(n, j))
			any = any || doomed[j]
		}
		if any {
			m.sweep(&p, &doomed)
		}
		if next == nil {
			break
		}
	}
	return before - m.length
}

// sweep deletes the doomed entries of the leaf of p.
func (m *Map[K, V]) sweep(p *path, doomed *[maxSlots]bool) {
	n, l := p[0].n, &m.leaf
	kept := 0
	for i := range n.count() {
		switch {
		case doomed[i] && m.texts:
			m.disown(n, i, i+1)
		case doomed[i]:
		case kept < i:
			l.copyKeys(n, kept, n, i, 1)
			l.copyValues(n, kept, n, i, 1)
			fallthrough
		default:
			kept++
		}
	}
	m.length -= n.count() - kept
	m.addToSizes(p, kept-n.count())
	m.version++
	n.setCount(kept)
	m.rebalance(p)
}

// deleteAt deletes entry i of the leaf n. It fails only if the map has clones, and then keeps the
// entry.
func (m *Map[K, V]) deleteAt(n *node, i int) error {
	if !m.cloned && (!m.ranks && i > 0 && n.count() > m.leaf.least || m.height == 1 && n.count() > 1) {
		m.cut(n, i, i+1)
		return nil
	}
	var p path
	m.trace(&p, m.key(n, i))
	if p[0] == (step{n, i}) { // unless compare contradicts itself
		return m.remove(&p, i+1)
	}
	return nil
}

// remove deletes the entries of the leaf of p from its index up to j. Errors are as for deleteAt.
func (m *Map[K, V]) remove(p *path, j int) error {
	if err := m.ownToDelete(p, j-p[0].i); err != nil {
		return err
	}
	m.addToSizes(p, p[0].i-j)
	m.cut(p[0].n, p[0].i, j)
	m.rebalance(p)
	return nil
}

// cut deletes the entries of the leaf n from i up to j. It does not change the nodes above.
func (m *Map[K, V]) cut(n *node, i, j int) {
	if m.texts {
		m.disown(n, i, j)
	}
	m.leaf.shift(n, j, i, 0)
	m.length -= j - i
	m.version++
}

// rebalance restores the invariants of the nodes of p after entries of its leaf were deleted.
func (m *Map[K, V]) rebalance(p *path) {
	n := p[0].n
	if n.count() == 0 && m.height > 1 && p[1].i == 0 {
		n = m.child(p[1].n, 1) // join will move its entries to the leaf
	}
	if n.count() > 0 {
		m.setSeparator(p, n)
	}
	for level := 0; level < m.height-1 && p[level].n.count() < m.layoutOf(level).least; level++ {
		if !m.join(level, p[level+1]) {
			break
		}
	}
	for m.height > 1 && m.root.count() == 0 {
		old := m.root
		m.root = m.child(old, 0)
		m.height--
		m.freeNode(old, m.height)
	}
	if m.length == 0 {
		m.freeNode(m.root, 0)
		m.root, m.height, m.cloned = nil, 0, false
	}
}

// setSeparator copies the first key of the leaf n into the inner node that separates p's leaf from
// the one before, if there is one.
func (m *Map[K, V]) setSeparator(p *path, n *node) {
	for level := 1; level < m.height; level++ {
		if i := p[level].i; i > 0 {
			m.inner.copyKey(p[level].n, i-1, &m.leaf, n, 0)
			return
		}
	}
}

// join joins the child of parent, on the given level, with a neighbour. It reports whether the two
// became one.
func (m *Map[K, V]) join(level int, parent step) bool {
	i := max(parent.i-1, 0) // the key between the two
	left, right := m.child(parent.n, i), m.child(parent.n, i+1)
	one := false
	if m.cloned && (left.shared() || right.shared()) {
		return false // there was no memory for a copy: see ownToDelete
	}
	if level == 0 {
		one = m.leaf.joinLeaves(left, right, !m.cloned)
	} else {
		one = m.inner.joinInner(left, right, parent.n, i)
	}
	switch {
	case one:
		m.inner.shift(parent.n, i+1, i, 1)
		m.freeNode(right, level)
	case level == 0:
		m.inner.copyKey(parent.n, i, &m.leaf, right, 0)
	}
	m.setSize(parent.n, i, level+1)
	if !one {
		m.setSize(parent.n, i+1, level+1)
	}
	return one
}

// joinLeaves either moves all entries to left and unlinks right, or shares the entries equally. It
// reports whether it moved all.
func (l *layout) joinLeaves(left, right *node, linked bool) bool {
	sum := left.count() + right.count()
	one := sum <= l.merge || left.count() == 0 || right.count() == 0
	half := sum / 2
	if one {
		half = sum
	}
	if one && linked {
		left.next = right.next
		if next := right.next.pointer(); next != nil {
			next.prev = left.address()
		}
	}
	if n := half - left.count(); n > 0 {
		l.copyKeys(left, left.count(), right, 0, n)
		l.copyValues(left, left.count(), right, 0, n)
		l.shift(right, n, 0, 0)
	} else {
		l.shift(right, 0, -n, 0)
		l.copyKeys(right, 0, left, half, -n)
		l.copyValues(right, 0, left, half, -n)
	}
	left.setCount(half)
	return one
}

// joinInner is joinLeaves for inner nodes. Key i of parent is the one between them.
func (l *layout) joinInner(left, right, parent *node, i int) bool {
	sum := left.count() + right.count() + 1
	one := sum <= l.merge
	half := (sum - 1) / 2
	if one {
		half = sum
	}
	// With each child that changes sides, a key goes up to parent and another comes down.
	switch n := half - left.count(); {
	case one:
		l.copyKey(left, left.count(), l, parent, i)
		l.copyKeys(left, left.count()+1, right, 0, right.count())
		l.copyValues(left, left.count()+1, right, 0, right.count()+1)
	case n > 0:
		l.copyKey(left, left.count(), l, parent, i)
		l.copyKeys(left, left.count()+1, right, 0, n-1)
		l.copyValues(left, left.count()+1, right, 0, n)
		l.copyKey(parent, i, l, right, n-1)
		l.shift(right, n, 0, 0)
	case n < 0:
		n = -n
		l.shift(right, 0, n, 0)
		l.copyKey(right, n-1, l, parent, i)
		l.copyKeys(right, 0, left, half+1, n-1)
		l.copyValues(right, 0, left, half+1, n)
		l.copyKey(parent, i, l, left, half)
	}
	left.setCount(half)
	return one
}
