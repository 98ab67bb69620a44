// Check: the invariants of a Map and of a Shared.

package hashmap

import (
	"fmt"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
)

// check returns the first invariant that does not hold, or "".
func (c *core) check() string {
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
	if sum.len != c.len || sum.tables != c.tables || sum.slots != c.slots || sum.bytes != c.bytes {
		return fmt.Sprintf("%d entries, %d tables, %d slots, %d bytes, counted as %d, %d, %d, %d",
			sum.len, sum.tables, sum.slots, sum.bytes, c.len, c.tables, c.slots, c.bytes)
	}
	return ""
}

// checkTable checks the table at references [from, to), and adds its figures to sum.
func (c *core) checkTable(t table, from, to uint64, sum *core) string {
	sum.tables++
	sum.slots += t.slots()
	if !c.huge.has(uintptr(t.base())) {
		sum.bytes += int(c.tableBytes(t.class()))
	}
	return c.checkEntries(t, func(at spot, h uint64) string {
		sum.len++
		sum.bytes += c.ownedBytes(at)
		if ref := h >> (c.shift & 63); (ref < from || ref >= to) && !c.isNaN(at.key, h) {
			return fmt.Sprintf("an entry of reference %d", ref)
		}
		return ""
	})
}

// checkEntries checks the tags and overflow bits of a table, and calls each with all entries and
// their hashes.
func (c *scheme) checkEntries(t table, each func(at spot, h uint64) string) string {
	groups := t.groups()
	passed := make([]uint8, groups) // overflow bits that there should be
	for i := range groups {
		for entries := t.full(i); entries != 0; entries &= entries - 1 {
			at := t.at(&c.layout, i, first(entries))
			h := c.hashAt(at.key)
			if fault := each(at, h); fault != "" {
				return fault
			}
			if c.isNaN(at.key, h) {
				continue
			}
			tag := fingerprint(h)
			if has := *tagIn(at.tags, at.slot); has != tag {
				return fmt.Sprintf("tag %x in slot %d of an entry with tag %x", has, at.slot, tag)
			}
			for at := t.home(h); at != i; at = t.after(at) {
				passed[at] |= overflowBit(tag)
			}
		}
	}
	for i := range groups {
		has := *t.overflow(i)
		if has&passed[i] != passed[i] || has != passed[i] && c.hash.kind != otherKeys {
			return fmt.Sprintf("group %d has overflow bits %x and needs %x", i, has, passed[i])
		}
	}
	return ""
}

// ownedBytes returns the size of the blocks of a slot.
func (c *core) ownedBytes(at spot) int {
	switch {
	case c.pairs:
		key, value, head := refIn(at).pairLengths()
		return head + key + value
	case c.hash.kind == stringKeys:
		return int(blockBytes(c.head, len(refIn(at).text(c.head))))
	case c.valueKind != noText:
		return int(blockBytes(0, len((*(*ref)(c.value(at))).text(0))))
	}
	return 0
}

// check panics if a locked table breaks an invariant of shared_head.go or table.go.
func (m *Shared[K, V]) check(x held) {
	live, text := uintptr(0), uintptr(0)
	fault := m.checkEntries(x.table, func(at spot, h uint64) string {
		live++
		if !m.direct {
			text += textBytes(m.appendTexts(nil, at.key)...)
		}
		if _, e := m.lookUp(h); e != uintptr(x.ref) && !m.isNaN(at.key, h) {
			return fmt.Sprintf("an entry with hash %#x, for which the directory has %#x", h, e)
		}
		return ""
	})
	for i := range x.groups() {
		if *versionOf(x.tags(i))&1 != 0 {
			fault = fmt.Sprintf("the version of group %d is odd", i)
		}
	}
	if hd := x.head(); fault == "" && (live != hd.live || text != hd.text) {
		fault = fmt.Sprintf("%d entries with %d bytes of text; the head has %d with %d", live, text, hd.live, hd.text)
	}
	if fault != "" {
		arg.Panicf("hashmap.Shared", "table %#x: %s", x.ref, fault)
	}
}

// checkAll checks all tables and directories.
func (m *Shared[K, V]) checkAll() {
	tables := 0
	for pos, more := uint64(0), true; more; {
		pos, more = m.visit(pos, func(x held) {
			tables++
			m.check(x)
		})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tables != tables {
		arg.Panicf("hashmap.Shared", "%d tables, counted as %d", tables, m.tables)
	}
	for _, d := range m.dirs[:max(len(m.dirs)-1, 0)] {
		for i := range uint64(1) << depthOf(d) {
			if e := entryFor(d, i<<(64-depthOf(d))).Load(); e != replacedDirectory {
				arg.Panicf("hashmap.Shared", "entry %d of a replaced directory is %#x", i, e)
			}
		}
	}
}
