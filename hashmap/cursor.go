// Cursors: the positions of running iterations.
//
//	live --grow--> detached      its table is now a copy of the table before
//	  |                |
//	  +-- Clear, Close-+--> ended
//
// An iteration goes through the tables in the order of the top bits of the hash, so it does not
// matter if other tables split or double. Before the current table grows, the cursor gets a copy of
// it. The iteration then looks up each key of the copy in the map, and yields the entry that is
// there.

package hashmap

import "unsafe"

// A cursor is the position of an iteration.
type cursor struct {
	table    table // the current table, or its copy
	detached bool  // table is a copy, followed by the hashes of its slots
	ended    bool
	next     *cursor // in core.cursors
}

// detach gives each cursor in t a copy of t, which is about to grow.
func (c *core) detach(t table) error {
	for cur := c.cursors; cur != nil; cur = cur.next {
		if cur.table != t {
			continue
		}
		p, err := c.alloc(c.copyBytes(t), tableAlign)
		if err != nil {
			return err
		}
		size := c.tableBytes(t.class())
		copy(unsafe.Slice((*byte)(p), size), unsafe.Slice((*byte)(t.base()), size))
		cur.table, cur.detached = table{unsafe.Add(p, t.class())}, true
		for i := range t.groups() {
			for entries := t.full(i); entries != 0; entries &= entries - 1 {
				at := t.at(&c.layout, i, first(entries))
				*c.hashIn(cur.table, i, at.slot) = c.hashAt(at.key)
			}
		}
	}
	return nil
}

// eachCopy calls f with the slot of r in each copy. r refers to the block of a key with hash h. A
// call that frees the block uses eachCopy first: the parent may give the block to another key.
func (c *core) eachCopy(r ref, h uint64, f func(at spot)) {
	for cur := c.cursors; cur != nil; cur = cur.next {
		if !cur.detached {
			continue
		}
		if at, ok := c.findRef(cur.table, r, h); ok {
			f(at)
		}
	}
}

// copyBytes returns the size of a copy of t with hashes.
func (c *core) copyBytes(t table) uintptr {
	return c.tableBytes(t.class()) + uintptr(t.slots())*unsafe.Sizeof(uint64(0))
}

// hashIn returns the address of the hash of a slot of group i in a copy.
func (c *core) hashIn(t table, i, slot uintptr) *uint64 {
	at := c.tableBytes(t.class()) + (i*groupSlots+slot)*unsafe.Sizeof(uint64(0))
	return (*uint64)(unsafe.Add(t.base(), at))
}

// enter moves cur to the table for hash h.
func (c *core) enter(cur *cursor, h uint64) {
	c.dropCopy(cur)
	cur.table = c.tableOf(h)
}

// dropCopy frees cur's copy, if it has one.
func (c *core) dropCopy(cur *cursor) {
	if cur.detached {
		c.free(cur.table.base(), c.copyBytes(cur.table))
		cur.detached = false
	}
}

// add registers a cursor.
func (c *core) add(cur *cursor) {
	c.reading.Lock()
	defer c.reading.Unlock()
	cur.next = c.cursors
	c.cursors = cur
}

// drop ends a registered cursor.
func (c *core) drop(cur *cursor) {
	c.dropCopy(cur)
	c.reading.Lock()
	defer c.reading.Unlock()
	for at := &c.cursors; *at != nil; at = &(*at).next {
		if *at == cur {
			*at = cur.next
			return
		}
	}
}

// endCursors ends all iterations.
func (c *core) endCursors() {
	for cur := c.cursors; cur != nil; cur = cur.next {
		c.dropCopy(cur)
		cur.ended = true
	}
	c.cursors = nil
}
