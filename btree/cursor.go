// Cursor: a place in a map that moves in both directions.
//
// A cursor keeps its leaf and index, and its key. If the map has changed since, it searches for the
// key.

package btree

import "github.com/freehold-go/freehold/internal/arg"

// A Cursor is a place in a [Map]: at a key, before the first one, or behind the last one. It moves
// by single entries, where an iterator is a loop:
//
//	for c, ok := m.Cursor(), c.Seek(lo); ok; ok = c.Next() {
//
// The map may change while it has cursors. A cursor stays at its key, even if the entry is deleted:
// Next and Prev go to the keys that are then its neighbours. A Cursor takes no memory off-heap, and
// needs no Close. Each goroutine needs its own; its calls count as reads of the map. After the map's
// Close all calls but Key panic.
type Cursor[K, V any] struct {
	m       *Map[K, V]
	at      savedKey[K]
	n       *node  // nil unless the cursor is at a key
	i       int    // index of the entry in n
	version uint64 // of the map, when n and i were set
	behind  bool   // n is nil, and the cursor is behind the last key
}

// Cursor returns a cursor before the first key.
func (m *Map[K, V]) Cursor() *Cursor[K, V] {
	m.mustBeOpen("Cursor")
	return &Cursor[K, V]{m: m}
}

// Seek goes to the least key that is not less than k, and reports whether there is one. If not, the
// cursor is behind the last key.
func (c *Cursor[K, V]) Seek(k K) bool {
	c.m.mustBeOpen("Cursor.Seek")
	return c.up(c.m.seek(k))
}

// First goes to the least key, and reports whether there is one.
func (c *Cursor[K, V]) First() bool {
	c.m.mustBeOpen("Cursor.First")
	return c.up(c.m.first(), 0)
}

// Last goes to the greatest key, and reports whether there is one.
func (c *Cursor[K, V]) Last() bool {
	c.m.mustBeOpen("Cursor.Last")
	return c.down(c.m.end())
}

// Next goes to the next greater key, and reports whether there is one. If not, the cursor is behind
// the last key. Before the first key, Next goes to it.
func (c *Cursor[K, V]) Next() bool {
	c.m.mustBeOpen("Cursor.Next")
	switch {
	case c.n != nil && c.version == c.m.version:
		return c.up(c.n, c.i+1)
	case c.n != nil:
		return c.up(c.m.seekBehind(c.at.key()))
	case c.behind:
		return false
	}
	return c.up(c.m.first(), 0)
}

// Prev goes to the next less key, and reports whether there is one. If not, the cursor is before
// the first key. Behind the last key, Prev goes to it.
func (c *Cursor[K, V]) Prev() bool {
	c.m.mustBeOpen("Cursor.Prev")
	switch {
	case c.n != nil && c.version == c.m.version:
		return c.down(c.n, c.i)
	case c.n != nil:
		return c.down(c.m.seek(c.at.key()))
	case c.behind:
		return c.down(c.m.end())
	}
	return false
}

// Key returns the cursor's key, even if its entry has been deleted. A string is valid until the
// cursor moves. Key panics if the cursor is at no key.
func (c *Cursor[K, V]) Key() K {
	c.mustBeAtKey("Key")
	return c.at.key()
}

// Value returns the value of the cursor's key, to read or to change in place, or nil if its entry
// has been deleted. The pointer is valid until any entry is inserted or deleted. See also
// [Map.Clone]. Value panics if the cursor is at no key.
func (c *Cursor[K, V]) Value() *V {
	c.mustBeAtKey("Value")
	if c.version != c.m.version || c.m.cloned {
		return c.m.At(c.at.key())
	}
	c.m.mustBeOpen("Cursor.Value")
	return c.m.value(c.n, c.i)
}

// up goes to entry i of n, or to the first entry of the next leaf if n has only i entries.
func (c *Cursor[K, V]) up(n *node, i int) bool {
	if n != nil && i == n.count() {
		var p *path
		n, i = c.m.next(n, &p), 0
	}
	return c.set(n, i, true)
}

// down goes to the entry before entry i of n.
func (c *Cursor[K, V]) down(n *node, i int) bool {
	if n != nil && i == 0 {
		var p *path
		if n = c.m.prev(n, &p); n != nil {
			i = n.count()
		}
	}
	return c.set(n, i-1, false)
}

// set goes to entry i of n. If n is nil, it goes behind the last key or before the first one.
func (c *Cursor[K, V]) set(n *node, i int, behind bool) bool {
	c.n, c.i, c.version, c.behind = n, i, c.m.version, behind
	if n == nil {
		return false
	}
	if k := c.m.key(n, i); c.m.texts {
		c.at.keep(k)
	} else {
		c.at.k = k
	}
	return true
}

func (c *Cursor[K, V]) mustBeAtKey(call string) {
	if c.n == nil {
		arg.Panicf("btree.Cursor."+call, "the cursor is at no key")
	}
}
