// Check: the invariants of a map, for tests and debug builds.

package hashmap

import (
	"fmt"
	"unsafe"
)

// mustBeWhole panics if an invariant does not hold in an insertion: the copies of the new
// entry are in no slot yet.
func (c *core) mustBeWhole() {
	if fault := c.verify(c.owned); fault != "" {
		panic("freehold: hashmap: " + fault)
	}
}

// check returns the first invariant that does not hold, or "".
func (c *core) check() string { return c.verify(false) }

// verify is check, for a map that may have copies that are in no slot.
func (c *core) verify(loose bool) string {
	if c.tables == 0 {
		if c.len != 0 || c.slots != 0 || c.bytes != 0 {
			return fmt.Sprintf("%d entries, %d slots, %d bytes without a table", c.len, c.slots, c.bytes)
		}
		return ""
	}
	sum := core{bytes: int(unsafe.Sizeof(c.dir) << c.depth())}
	for i := uint64(0); i < 1<<c.depth(); {
		t := table{*c.entry(i)}
		from, to := c.span(i << (c.shift & 63))
		if n := to - from; from != i || n&(n-1) != 0 || from%n != 0 || *c.entry(to - 1) != t.ref {
			return fmt.Sprintf("reference %d is of a table at [%d, %d)", i, from, to)
		}
		if fault := c.checkTable(t, from, to, &sum); fault != "" {
			return fmt.Sprintf("table at [%d, %d) of %d groups: %s", from, to, t.groups(), fault)
		}
		i = to
	}
	for cur := c.cursors; cur != nil; cur = cur.next {
		if cur.detached {
			sum.bytes += int(c.copyBytes(cur.table))
		}
	}
	if loose {
		sum.bytes = max(sum.bytes, c.bytes)
	}
	if sum.len != c.len || sum.tables != c.tables || sum.slots != c.slots || sum.bytes != c.bytes {
		return fmt.Sprintf("%d entries, %d tables, %d slots, %d bytes, counted as %d, %d, %d, %d",
			sum.len, sum.tables, sum.slots, sum.bytes, c.len, c.tables, c.slots, c.bytes)
	}
	return ""
}

// checkTable checks the table at references [from, to), and adds its figures to sum.
func (c *core) checkTable(t table, from, to uint64, sum *core) string {
	groups := t.groups()
	sum.tables++
	sum.slots += int(groups) * slotsPerGroup
	sum.bytes += int(groups * c.stride)
	passed := make([]uint64, groups) // overflow bits that there should be
	for i := range groups {
		g := t.group(i, c.stride)
		w := *tagsAt(g)
		for full := matchFull(w); full != 0; full &= full - 1 {
			slot := slotOf(full)
			key := c.key(g, slot)
			sum.len++
			sum.bytes += c.ownedBytes(g, slot)
			h := c.hashAt(key)
			if c.isNaN(key, h) {
				continue
			}
			if at := h >> (c.shift & 63); at < from || at >= to {
				return fmt.Sprintf("an entry of reference %d", at)
			}
			tag := tagOf(h)
			if w>>(8*slot&63)&0xFF != tag {
				return fmt.Sprintf("tag %x in %x of an entry with tag %x", slot, w, tag)
			}
			for at := t.home(h); at != i; at = (at + 1) & (groups - 1) {
				passed[at] |= passBit(tag)
			}
		}
	}
	for i := range groups {
		has := *tagsAt(t.group(i, c.stride)) &^ (1<<overflowShift - 1)
		if has&passed[i] != passed[i] || has != passed[i] && c.hash.kind != otherKeys {
			return fmt.Sprintf("group %d has overflow bits %x and needs %x", i, has, passed[i])
		}
	}
	return ""
}

// ownedBytes returns the size of the blocks of a slot.
func (c *core) ownedBytes(g unsafe.Pointer, slot uintptr) int {
	n := uintptr(0)
	if c.valueKind != noText {
		n += blockBytes(0, len((*c.valueRef(g, slot)).text(0)))
	}
	if c.hash.kind == stringKeys {
		n += blockBytes(c.head, len((*refIn(g, slot)).text(c.head)))
	}
	return int(n)
}
