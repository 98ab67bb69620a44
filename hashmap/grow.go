// Growth: a table without a place for an entry doubles or splits.
//
//	groups        1 -> 2 -> 4 -> ... -> maxGroups, which splits into two of maxGroups
//
// A split moves the entries with a 1 in the next bit of their hash to a new table. Of the others,
// entries that had passed full groups move to their home if it has room. All memory is allocated
// before an entry moves, so an error leaves the map unchanged.
//
// If the hashes of a table agree in all further bits, no split would help, and the directory would
// double forever. Then the table doubles instead, and entries may pass any number of groups.

package hashmap

import (
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"github.com/freehold-go/freehold"
)

// insert takes a slot for a new key with hash h. The caller writes the key and the value. On an
// error nothing has changed.
func (c *core) insert(h uint64) (g unsafe.Pointer, slot uintptr, err error) {
	for {
		if c.tables > 0 {
			t := c.tableOf(h)
			g, slot, ok := t.place(&c.layout, h, maxPasses)
			if !ok && c.isSparse(t) {
				g, slot, ok = t.place(&c.layout, h, t.groups())
			}
			if ok {
				c.len++
				return g, slot, nil
			}
		}
		if err := c.grow(h); err != nil {
			return nil, 0, err
		}
	}
}

// sparseShare bounds growth by colliding hashes: a table without a place does not grow if less than
// 1/sparseShare of its slots are in use.
const sparseShare = 4

// isSparse reports whether t has enough free slots to be searched beyond maxPasses instead.
func (c *core) isSparse(t table) bool {
	return t.groups() > maxPasses && c.count(t)*sparseShare < int(t.groups())*slotsPerGroup
}

// grow makes room in the table for hash h. On an error nothing has changed.
func (c *core) grow(h uint64) error {
	if c.tables == 0 {
		return c.build(0)
	}
	t := c.tableOf(h)
	from, to := c.span(h)
	if t.groups() < c.maxGroups || !c.divides(t, from, to) {
		return c.double(t, from, to)
	}
	return c.split(t, from, to)
}

// divides reports whether a split would move some entries of t and keep others. It looks at a few
// entries.
func (c *core) divides(t table, from, to uint64) bool {
	const few = 32
	if to-from == 1 && 2<<c.depth() > maxSparse*(c.tables+few) {
		return false
	}
	bit := c.nextBit(to - from)
	seen, ones := 0, 0
	for i := uintptr(0); i < t.groups() && seen < few; i++ {
		g := t.group(i, c.stride)
		for full := matchFull(*tagsAt(g)); full != 0; full &= full - 1 {
			ones += int(c.hashOfKey(c.key(g, slotOf(full))) >> bit & 1)
			seen++
		}
	}
	return ones > 0 && ones < seen
}

// maxSparse is the most references for each table to which the directory grows for a split.
const maxSparse = 16

// nextBit returns the number of the hash bit that divides a table with n references.
func (c *core) nextBit(n uint64) uint {
	return uint(c.shift) - 1 + uint(bits.TrailingZeros64(n))
}

// build makes the directory and a first table of 1<<log groups.
func (c *core) build(log uintptr) error {
	dir, err := c.alloc(unsafe.Sizeof(c.dir)<<minDepth, lineBytes)
	if err != nil {
		return err
	}
	t, err := c.newTable(log)
	if err != nil {
		c.free(dir, unsafe.Sizeof(c.dir)<<minDepth)
		return err
	}
	c.dir, c.shift = dir, 64-minDepth
	for i := range uint64(1 << minDepth) {
		c.setEntry(i, t)
	}
	c.tables, c.slots = 1, slotsPerGroup<<log
	return nil
}

// double replaces t, which has the references [from, to), by a table of twice the groups.
func (c *core) double(t table, from, to uint64) error {
	if err := c.detach(t); err != nil {
		return err
	}
	twice, err := c.newTable(t.log() + 1)
	if err != nil {
		return err
	}
	for i := range t.groups() {
		g := t.group(i, c.stride)
		for full := matchFull(*tagsAt(g)); full != 0; full &= full - 1 {
			slot := slotOf(full)
			c.move(twice, g, slot, c.hashOfKey(c.key(g, slot)))
		}
	}
	for i := from; i < to; i++ {
		c.setEntry(i, twice)
	}
	c.slots += int(t.groups()) * slotsPerGroup
	c.freeTable(t)
	return nil
}

// split moves the entries of t with a 1 in the next bit of their hash to a new table. t has the
// references [from, to).
func (c *core) split(t table, from, to uint64) error {
	if err := c.detach(t); err != nil {
		return err
	}
	ones, err := c.newTable(t.log())
	if err != nil {
		return err
	}
	if to-from == 1 {
		if err := c.deepen(); err != nil {
			c.freeTable(ones)
			return err
		}
		from, to = 2*from, 2*to
	}
	t = c.toHuge(t, from, to)
	bit := c.nextBit(to - from)
	for i := range t.groups() {
		*tagsAt(t.group(i, c.stride)) &= 1<<overflowShift - 1
	}
	for i := range t.groups() {
		g := t.group(i, c.stride)
		w := tagsAt(g)
		for full := matchFull(*w); full != 0; full &= full - 1 {
			slot := slotOf(full)
			h := c.hashOfKey(c.key(g, slot))
			switch {
			case h>>bit&1 != 0:
				*w = setTag(*w, slot, 0)
				c.move(ones, g, slot, h)
			case t.home(h) != i:
				c.comeHome(t, i, slot, h)
			}
		}
	}
	for i := (from + to) / 2; i < to; i++ {
		c.setEntry(i, ones)
	}
	c.tables++
	c.slots += int(t.groups()) * slotsPerGroup
	return nil
}

// toHuge moves t to a huge page, if there is room in one. t has the references [from, to).
func (c *core) toHuge(t table, from, to uint64) table {
	size := c.stride << t.log()
	if size != c.huge.size || c.huge.has(uintptr(t.base())) {
		return t
	}
	p := c.hugeTable()
	if p == nil {
		return t
	}
	copy(unsafe.Slice((*byte)(p), size), unsafe.Slice((*byte)(t.base()), size))
	moved := table{unsafe.Add(p, t.log())}
	for i := from; i < to; i++ {
		c.setEntry(i, moved)
	}
	c.freeTable(t)
	return moved
}

// comeHome moves an entry of group i to its home if that has a free slot, or else sets the overflow
// bits for the entry.
func (c *core) comeHome(t table, i, slot uintptr, h uint64) {
	g := t.group(i, c.stride)
	if c.isNaN(c.key(g, slot), h) {
		return // a NaN needs no overflow bits
	}
	if home, to, ok := t.place(&c.layout, h, 0); ok {
		c.copyEntry(home, to, g, slot)
		*tagsAt(g) = setTag(*tagsAt(g), slot, 0)
		return
	}
	last := t.groups() - 1
	for at := t.home(h); at != i; at = (at + 1) & last {
		*tagsAt(t.group(at, c.stride)) |= passBit(tagOf(h))
	}
}

// deepen doubles the directory.
func (c *core) deepen() error {
	size := unsafe.Sizeof(c.dir) << c.depth()
	dir, err := c.alloc(2*size, lineBytes)
	if err != nil {
		return err
	}
	deeper := core{dir: dir}
	for i := uint64(0); i < 1<<c.depth(); i++ {
		deeper.setEntry(2*i, table{*c.entry(i)})
		deeper.setEntry(2*i+1, table{*c.entry(i)})
	}
	c.free(c.dir, size)
	c.dir = dir
	c.shift--
	return nil
}

// reserve makes room for n more entries, so that few Puts grow a table. On an error some tables may
// have grown; the entries are unchanged.
func (c *core) reserve(n int) error {
	if n > (math.MaxInt-c.len)/int(2*c.stride) {
		return fmt.Errorf("%w: %d more entries are more bytes than an int can hold", freehold.ErrOutOfMemory, n)
	}
	want := c.len + n
	if want == 0 {
		return nil
	}
	if c.tables == 0 {
		if err := c.build(0); err != nil {
			return err
		}
	}
	for h := uint64(0); ; {
		t := c.tableOf(h)
		from, to := c.span(h)
		if share := want>>c.depth()*int(to-from) + 1; int(t.groups())*slotsPerGroup >= roomy(share) {
			if h = to << (c.shift & 63); h == 0 { // the last table
				return nil
			}
			continue
		}
		c.huge.needed().wait()
		grow := c.split
		if t.groups() < c.maxGroups {
			grow = c.double
		}
		if err := grow(t, from, to); err != nil {
			return err
		}
	}
}

// roomy returns how many slots to provide for n entries.
func roomy(n int) int {
	if n <= (maxPasses+1)*slotsPerGroup {
		return n
	}
	return n + n/2 - n/16
}
