// Growth: a table without a place for an entry is rebuilt, grows or splits.
//
//	groups        1 -> 2 -> 3 -> 4 -> 6 -> 8 -> 12 -> ... -> the limit, then two tables
//
// A split moves the entries with a 1 in the next bit of their hash to a new table. Entries that had
// passed full groups move nearer to their home if there is room. All memory is allocated before an
// entry moves, so an error leaves the map unchanged.
//
// Deletions and insertions leave entries farther from their homes than an insertion alone would. So
// a table that is less than 13/16 full is rebuilt: its entries move nearer to their homes.
//
// If the hashes of a table agree in all further bits, no split would help, and the directory would
// double forever. Then the table grows instead, and entries may pass any number of groups.

package hashmap

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"github.com/freehold-go/freehold"
)

// insert takes a slot for a new key with hash h. The caller writes the key and the value. On an
// error nothing has changed.
func (c *core) insert(h uint64) (at spot, err error) {
	for {
		if c.tables > 0 {
			if at, ok := c.makePlace(c.tableOf(h), h); ok {
				c.len++
				return at, nil
			}
		}
		if err := c.grow(h); err != nil {
			return spot{}, err
		}
	}
}

// insertAtHome is insert after a search that ended in the home: keys and tags are the addresses of
// its first key and of its tags. keys is 0 after another search.
func (c *core) insertAtHome(h uint64, keys, tags uintptr) (at spot, err error) {
	if keys != 0 && c.tables > 0 {
		if free := full(tagWords(pointer(tags))) ^ allSlots; free != 0 {
			slot := pick(free, h)
			at = spot{pointer(keys + slot*c.keyStep), pointer(tags), slot}
			*tagIn(at.tags, slot) = fingerprint(h)
			c.len++
			return at, nil
		}
	}
	return c.insert(h)
}

// makePlace is place, but searches the whole table if it is sparse, and rebuilds it if that helps.
func (c *core) makePlace(t table, h uint64) (at spot, ok bool) {
	if at, ok = t.place(&c.layout, h, maxPasses); ok || t.groups() <= maxPasses {
		return at, ok
	}
	switch n := t.count(); {
	case n*sparseShare < t.slots():
		return t.place(&c.layout, h, t.groups())
	case n*16 < t.slots()*13 && c.detach(t) == nil:
		c.settle(t, table{}, 0)
		return t.place(&c.layout, h, maxPasses)
	}
	return at, false
}

// sparseShare bounds growth by colliding hashes: a table without a place does not grow if less than
// 1/sparseShare of its slots are in use.
const sparseShare = 4

// grow makes room in the table for hash h. On an error nothing has changed.
func (c *core) grow(h uint64) error {
	if c.tables == 0 {
		return c.build()
	}
	t := c.tableOf(h)
	from, to := c.span(h)
	limit := c.limit(from << (c.shift & 63))
	if t.class() < limit && !c.huge.has(uintptr(t.base())) { // which would lose the huge page's memory
		class := min(nextClass(t.class()), limit)
		return c.enlarge(t, from, to, class, class == limit)
	}
	if !c.divides(t, from, to) {
		return c.enlarge(t, from, to, nextClass(t.class()), false)
	}
	return c.split(t, from, to, min(t.class(), c.limit((from+to)<<(c.shift-1&63))))
}

// nextClass returns the class that a table of a class grows to: 1.3 to 2 times the groups.
func nextClass(of uintptr) uintptr {
	switch {
	case of < 3, of >= fineClasses:
		return min(of+1, classMask)
	case of < 7:
		return of + 2
	}
	return min(of+4, fineClasses)
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
		for entries := t.full(i); entries != 0; entries &= entries - 1 {
			ones += int(c.hashOfKey(t.at(&c.layout, i, first(entries)).key) >> bit & 1)
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

// build makes the first table, and the directory.
func (c *core) build() error {
	t, err := c.newTable(0, false)
	if err != nil {
		return err
	}
	dir, err := c.alloc(unsafe.Sizeof(c.dir)<<minDepth, lineBytes)
	if err != nil {
		c.freeTable(t)
		return err
	}
	c.dir, c.shift = dir, 64-minDepth
	for i := range uint64(1 << minDepth) {
		c.setEntry(i, t)
	}
	c.tables, c.slots = 1, t.slots()
	return nil
}

// enlarge replaces t by a table of a greater class, in a huge page if lasting is set. t has the
// references [from, to).
func (c *core) enlarge(t table, from, to uint64, class uintptr, lasting bool) error {
	if err := c.detach(t); err != nil {
		return err
	}
	larger, err := c.newTable(class, lasting)
	if err != nil {
		return err
	}
	for i := range t.groups() {
		for entries := t.full(i); entries != 0; entries &= entries - 1 {
			at := t.at(&c.layout, i, first(entries))
			c.move(larger, at, c.hashOfKey(at.key))
		}
	}
	for i := from; i < to; i++ {
		c.setEntry(i, larger)
	}
	c.slots += larger.slots() - t.slots()
	c.freeTable(t)
	return nil
}

// split moves the entries of t with a 1 in the next bit of their hash to a new table of a class, or
// of a greater one if they need it. t has the references [from, to).
func (c *core) split(t table, from, to uint64, class uintptr) error {
	if err := c.detach(t); err != nil {
		return err
	}
	bit, lasting := c.nextBit(to-from), class > 0
	if n := t.count(); n > groupSlots*int(classes[class].groups) {
		class = max(class, classFor(c.ones(t, bit), true))
	}
	ones, err := c.newTable(class, lasting)
	if err != nil {
		return err
	}
	if to-from == 1 {
		if err := c.deepen(c.depth() + 1); err != nil {
			c.freeTable(ones)
			return err
		}
		from, to = 2*from, 2*to
	}
	t = c.toHuge(t, from, to)
	c.settle(t, ones, bit)
	for i := (from + to) / 2; i < to; i++ {
		c.setEntry(i, ones)
	}
	c.tables++
	c.slots += ones.slots()
	return nil
}

// ones returns how many entries of t may have a 1 in a bit of their hash. A NaN has another hash
// when settle asks again, so ones counts each.
func (c *core) ones(t table, bit uint) (n int) {
	for i := range t.groups() {
		for entries := t.full(i); entries != 0; entries &= entries - 1 {
			key := t.at(&c.layout, i, first(entries)).key
			if h := c.hashOfKey(key); h>>bit&1 != 0 || c.isNaN(key, h) {
				n++
			}
		}
	}
	return n
}

// classFor returns the least class with room for n entries, exactly or on average.
func classFor(n int, exactly bool) (class uintptr) {
	for class < classMask && n > roomIn(class, exactly) {
		class++
	}
	return class
}

// roomIn returns how many entries a table of a class has room for. A table of up to maxPasses
// groups takes entries until it is full, and others grow when they are 0.9 full on average. Unless
// exactly is set, the entries are the average of many tables: roomIn then leaves two standard
// deviations of room, so that about 2% of the tables grow.
func roomIn(class uintptr, exactly bool) int {
	n := int(classes[class].groups) * groupSlots
	switch {
	case !exactly:
		return n - n/5
	case classes[class].groups > maxPasses:
		return n - n/8
	}
	return n
}

// toHuge moves t to a huge page, if there is room in one. t has the references [from, to).
func (c *core) toHuge(t table, from, to uint64) table {
	if t.class() != c.limit(from<<(c.shift&63)) || c.huge.has(uintptr(t.base())) {
		return t
	}
	size := c.tableBytes(t.class())
	p := c.hugeTable(size)
	if p == nil {
		return t
	}
	copy(unsafe.Slice((*byte)(p), size), unsafe.Slice((*byte)(t.base()), size))
	moved := table{unsafe.Add(p, t.class())}
	for i := from; i < to; i++ {
		c.setEntry(i, moved)
	}
	c.freeTable(t)
	return moved
}

// settle moves the entries of t nearer to their homes. Those with a 1 in a bit of their hash it
// moves to table ones instead, if that is not nil.
func (c *core) settle(t, ones table, bit uint) {
	if ones.ref != nil && ones.class() == t.class() && t.class() < fineClasses {
		c.part(t, ones, bit)
		return
	}
	clear(unsafe.Slice(t.overflow(0), t.groups()))
	for i := range t.groups() {
		for entries := t.full(i); entries != 0; entries &= entries - 1 {
			at := t.at(&c.layout, i, first(entries))
			h := c.hashOfKey(at.key)
			switch {
			case ones.ref != nil && h>>bit&1 != 0:
				*tagIn(at.tags, at.slot) = 0
				c.move(ones, at, h)
			case t.home(h) != i:
				c.comeHome(t, i, at, h)
			}
		}
	}
}

// part is settle for two tables of one class, in which each entry has the same home. It copies t to
// ones and then frees each slot in one of the tables. So it has no branch for most entries.
func (c *core) part(t, ones table, bit uint) {
	clear(unsafe.Slice(t.overflow(0), t.groups()))
	size := c.tableBytes(t.class())
	copy(unsafe.Slice((*byte)(ones.base()), size), unsafe.Slice((*byte)(t.base()), size))
	var sides [fineGroups]sides
	for i := range t.groups() {
		s := c.sidesOf(t, i, bit)
		keepTags(t.tags(i), ^s.ones)
		keepTags(ones.tags(i), s.ones)
		c.toQuarters(t, i, s.astray&^s.ones)
		c.toQuarters(ones, i, s.astray&s.ones)
		c.moved += bits.OnesCount64(s.ones)
		sides[i] = s
	}
	for i := range t.groups() {
		for away := sides[i].away; away != 0; away &= away - 1 {
			in := t
			if away&-away&sides[i].ones != 0 {
				in = ones
			}
			at := in.at(&c.layout, i, first(away))
			c.comeHome(in, i, at, c.hashOfKey(at.key))
		}
	}
}

// sides are the slots of a group whose entries have a 1 in the bit that divides the table, have
// another home, or prefer another quarter of this one.
type sides struct{ ones, away, astray uint64 }

// sidesOf returns the sides of group i.
func (c *core) sidesOf(t table, i uintptr, bit uint) (s sides) {
	entries := t.full(i)
	if !c.short || c.keyBytes != 8 {
		for ; entries != 0; entries &= entries - 1 {
			h, slot := c.hashOfKey(t.at(&c.layout, i, first(entries)).key), entries&-entries
			switch {
			case t.home(h) != i:
				s.away |= slot
			case slot&quarterSet(h>>quarterShift&3) == 0:
				s.astray |= slot
			}
			if h>>bit&1 != 0 {
				s.ones |= slot
			}
		}
		return s
	}
	key, seed, groups := t.at(&c.layout, i, 0).key, c.hash.seed, uint64(t.groups())
	var odd, upper uint64                 // the entries that prefer quarters 1 and 3, and 2 and 3
	for n := range uint(groupSlots / 2) { // slots n and n+8, also if they are free
		g := seed.Uint64(*(*uint64)(unsafe.Add(key, uintptr(n)*c.keyStep)))
		h := seed.Uint64(*(*uint64)(unsafe.Add(key, uintptr(n+groupSlots/2)*c.keyStep)))
		s.ones |= (g>>(bit&63)&1 | h>>(bit&63)&1<<1) << (8 * n)
		odd |= (g>>quarterShift&1 | h>>quarterShift&1<<1) << (8 * n)
		upper |= (g>>(quarterShift+1)&1 | h>>(quarterShift+1)&1<<1) << (8 * n)
		x, y := uint64(uint32(g))*groups>>groupShift^uint64(i), uint64(uint32(h))*groups>>groupShift^uint64(i)
		s.away |= (-x>>63 | -y>>63<<1) << (8 * n) // 1 unless x or y is 0
	}
	s.ones, s.away = s.ones&entries, s.away&entries
	s.astray = ((odd ^ 3*someSlots<<32) | (upper ^ eachByte<<1)) & entries &^ s.away
	return s
}

// toQuarters moves entries of group i, their home, to the quarters that they prefer, if there is
// room.
func (c *core) toQuarters(t table, i uintptr, slots uint64) {
	free := t.full(i) ^ allSlots
	for ; slots != 0; slots &= slots - 1 {
		at := t.at(&c.layout, i, first(slots))
		h := c.hashOfKey(at.key)
		if room := free & quarterSet(h>>quarterShift&3); room != 0 {
			to := t.at(&c.layout, i, first(room))
			c.copyEntry(to, at)
			*tagIn(to.tags, to.slot), *tagIn(at.tags, at.slot) = *tagIn(at.tags, at.slot), 0
			free ^= room&-room | slots&-slots
		}
	}
}

// keepTags frees the slots at tags that are not in a set.
func keepTags(tags unsafe.Pointer, set uint64) {
	lo, hi := tagWords(tags)
	b := (*[groupSlots]byte)(tags)
	binary.LittleEndian.PutUint64(b[:8], lo&(set&eachByte*0xFF))
	binary.LittleEndian.PutUint64(b[8:], hi&(set>>1&eachByte*0xFF))
}

// comeHome moves an entry of group i nearer to its home, and sets the overflow bits for it. Its new
// group is the home or one that settle has visited, so settle does not move the entry again.
func (c *core) comeHome(t table, i uintptr, at spot, h uint64) {
	if c.isNaN(at.key, h) {
		return // a NaN needs no overflow bits
	}
	reach := uintptr(0)
	if home := t.home(h); home < i { // the groups between were settled before
		reach = i - home - 1
	}
	if to, ok := t.place(&c.layout, h, reach); ok {
		c.copyEntry(to, at)
		c.moved++
		*tagIn(at.tags, at.slot) = 0
		return
	}
	t.pass(&c.layout, h, i)
}

// deepen doubles the directory until it has a depth.
func (c *core) deepen(depth uint) error {
	if depth == c.depth() {
		return nil
	}
	dir, err := c.alloc(unsafe.Sizeof(c.dir)<<depth, lineBytes)
	if err != nil {
		return err
	}
	deeper := core{dir: dir}
	for i := range uint64(1) << depth {
		deeper.setEntry(i, table{*c.entry(i >> (depth - c.depth()))})
	}
	c.free(c.dir, unsafe.Sizeof(c.dir)<<c.depth())
	c.dir, c.shift = dir, uint8(64-depth)
	return nil
}

// reserve makes room for n more entries, so that few Puts grow a table. On an error a map without
// memory is unchanged. In another one some tables may have grown; the entries are unchanged.
func (c *core) reserve(n int) (err error) {
	if n > (math.MaxInt-c.len)/int(c.groupBytes/(groupSlots/2)) {
		return fmt.Errorf("%w: %d more entries are more bytes than an int can hold", freehold.ErrOutOfMemory, n)
	}
	if n == 0 {
		return nil
	}
	if c.tables == 0 {
		if err := c.build(); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				c.release()
			}
		}()
	}
	want := c.len + n
	if uintptr(want)*c.groupBytes/groupSlots >= c.huge.from { // the first tables are in huge pages too
		defer func(from uintptr) { c.huge.from = from }(c.huge.from)
		c.huge.from = 0
	}
	depth := c.depth()
	for want>>depth >= roomIn(c.limit(math.MaxUint64), false) {
		depth++
	}
	if err := c.deepen(depth); err != nil {
		return err
	}
	for h := uint64(0); ; {
		t := c.tableOf(h)
		from, to := c.span(h)
		class, err := c.share(want, from, to), error(nil)
		switch {
		case class > c.limit(h):
			half := (from + to) / 2
			if class = c.share(want, half, to); class > c.limit(half<<(c.shift&63)) {
				class = 0 // that table will split too
			}
			c.huge.needed().wait()
			err = c.split(t, from, to, class)
		case class > t.class():
			c.huge.needed().wait()
			err = c.enlarge(t, from, to, class, true)
		default:
			if h = to << (c.shift & 63); h == 0 { // the last table
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}

// share returns the class for the table of the references [from, to), if the map has want entries.
func (c *core) share(want int, from, to uint64) uintptr {
	if from == 0 && to == 1<<c.depth() {
		return classFor(want, true)
	}
	return classFor(want>>c.depth()*int(to-from)+1, false)
}
