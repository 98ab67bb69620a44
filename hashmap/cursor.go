// Cursors: the positions of running iterations.
//
//	live --grow--> detached      its table is now a copy of the table before
//	  |                |
//	  +-- Clear, Close-+--> ended
//
// An iteration goes through the tables by the top bits of the hash, so tables that split
// or double before and behind it do not matter. Before the table that it is in grows, it
// gets a copy. Of each entry there, the map is then asked for what became of it.

package hashmap

import "unsafe"

type cursor struct {
	table    table // the one it is in, or its copy
	detached bool  // table is a copy, followed by the hashes of its slots
	ended    bool
	next     *cursor // in core.cursors
}

// detach gives the cursors in t, which is about to grow, a copy of it.
func (c *core) detach(t table) error {
	for cur := c.cursors; cur != nil; cur = cur.next {
		if cur.table != t {
			continue
		}
		p, err := c.alloc(c.copyBytes(t), lineBytes)
		if err != nil {
			return err
		}
		size := c.stride << t.log()
		copy(unsafe.Slice((*byte)(p), size), unsafe.Slice((*byte)(t.base()), size))
		cur.table, cur.detached = table{unsafe.Add(p, t.log())}, true
		for i := range t.groups() {
			g := t.group(i, c.stride)
			for full := matchFull(*tagsAt(g)); full != 0; full &= full - 1 {
				slot := slotOf(full)
				*c.hashIn(cur.table, i, slot) = c.hashAt(c.key(g, slot))
			}
		}
	}
	return nil
}

// replaceCopies sets references to the block of a key with hash h to another, in copies.
func (c *core) replaceCopies(old, r ref, h uint64) {
	for cur := c.cursors; cur != nil; cur = cur.next {
		if !cur.detached {
			continue
		}
		if g, slot := c.findRef(cur.table, old, h); g != nil {
			*refIn(g, slot) = r
		}
	}
}

// copyBytes returns the size of a copy of t with hashes.
func (c *core) copyBytes(t table) uintptr {
	return t.groups() * (c.stride + slotsPerGroup*unsafe.Sizeof(uint64(0)))
}

// hashIn returns the hash of a slot of group i in a copy.
func (c *core) hashIn(t table, i, slot uintptr) *uint64 {
	at := t.groups()*c.stride + (i*slotsPerGroup+slot)*unsafe.Sizeof(uint64(0))
	return (*uint64)(unsafe.Add(t.base(), at))
}

// enter puts cur into the table for hash h.
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
	cur.table = table{}
}

// add adds a cursor.
func (c *core) add(cur *cursor) {
	c.reading.Lock()
	defer c.reading.Unlock()
	cur.next = c.cursors
	c.cursors = cur
}

// drop removes a cursor.
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
