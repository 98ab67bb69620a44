// Grow: growth and splits of the segments of extendible hashing.
//
// All memory is allocated first, then filled, then published. So an error leaves the table as it
// was.

package intern

import "github.com/freehold-go/freehold"

// grow replaces the segment of a hash by a larger one, or splits it.
func (t *table) grow(m *memory, hash uint32) error {
	i := int(uint64(hash) >> (hashBits - t.depth))
	old := t.directory[i]
	slots, used := old.all(), int(old.head().used)
	if t.mustSplit(old, used) {
		return t.split(m, old, i)
	}
	e, err := t.newSegment(m, slots, used, old.depth)
	if err != nil {
		return err
	}
	t.publish(i, e)
	t.freeSegment(m, old)
	return nil
}

// mustSplit reports whether a segment with the given number of used slots must be split. It is
// false if a split would double a directory that is large for the strings: then many hashes begin
// with the same bits, and the segment grows beyond the limit instead.
func (t *table) mustSplit(e entry, used int) bool {
	homes := homesFor(used)
	if headBytes+slotBytes*(homes+spareFor(homes)) <= maxSegmentBytes {
		return false
	}
	return e.depth < t.depth || 2*len(t.directory)*minPerEntry <= t.used
}

// split replaces a segment by two, for hashes with the next bit 0 and 1.
func (t *table) split(m *memory, old entry, i int) (err error) {
	directory := t.directory
	if old.depth == t.depth {
		addr, err := m.alloc(2 * len(directory) * entryBytes)
		if err != nil {
			return err
		}
		directory = entriesAt(addr, 2*len(directory))
	}
	slots := old.all()
	cut, used := 0, 0 // slots[:cut] have the bit 0 or are free; used of them are in use
	for cut < len(slots) && (slots[cut] == noSlot || slots[cut].hash()<<old.depth>>(hashBits-1) == 0) {
		if slots[cut] != noSlot {
			used++
		}
		cut++
	}
	low, err := t.newSegment(m, slots[:cut], used, old.depth+1)
	var high entry
	if err == nil {
		if high, err = t.newSegment(m, slots[cut:], int(old.head().used)-used, old.depth+1); err != nil {
			t.freeSegment(m, low)
		}
	}
	if err != nil {
		if old.depth == t.depth {
			m.free(addrOfEntries(directory), len(directory)*entryBytes)
		}
		return err
	}
	if old.depth == t.depth {
		for j, e := range t.directory {
			directory[2*j], directory[2*j+1] = e, e
		}
		t.work += len(directory)
		t.freeDirectory(m)
		t.directory = directory
		t.depth++
		i *= 2
	}
	i &^= 1<<(t.depth-old.depth) - 1
	t.publish(i, low)
	t.publish(i+1<<(t.depth-low.depth), high)
	t.freeSegment(m, old)
	return nil
}

// publish writes a segment to all its entries in the directory; i is the index of one of them.
func (t *table) publish(i int, e entry) {
	n := 1 << (t.depth - e.depth)
	i &^= n - 1
	for j := range n {
		t.directory[i+j] = e
	}
	t.work += n
}

// newSegment returns a segment with the used slots of an old one.
func (t *table) newSegment(m *memory, slots []slot, used int, depth uint32) (entry, error) {
	homes := homesFor(used)
	for spare := spareFor(homes); ; spare = 2*spare + used/2 {
		bytes := freehold.GoodSize(m.parent, headBytes+slotBytes*(homes+spare))
		total := (bytes - headBytes) / slotBytes
		addr, err := m.alloc(headBytes + slotBytes*total)
		if err != nil {
			return entry{}, err
		}
		e := entry{slots: addr + headBytes, homes: uint32(total - spare), depth: depth}
		*e.head() = head{used: uint32(used), most: e.homes * 27 / 32, total: uint32(total)}
		t.work += total
		if e.fill(slots) {
			return e, nil
		}
		t.freeSegment(m, e)
	}
}

// homesFor returns the number of homes for a new segment with the given number of used slots. It
// makes the segment 8/11 full, with at least minHomes. The segment grows when it is 27/32 full.
func homesFor(used int) int { return max(minHomes, used+3*used/8+1) }

// spareFor returns the number of slots that a segment has beyond its homes.
func spareFor(homes int) int { return min(2*stride+homes/8, maxSpare) }

// fill copies the used slots of an old segment to e, which is new. It reports false if they do not
// fit, with a few slots to spare at the end.
func (e *entry) fill(slots []slot) bool {
	to := e.all()
	most := len(to) - stride - 2
	next := 0
	for _, v := range slots {
		if v == noSlot {
			continue
		}
		p := max(next, int(e.home(v.hash())))
		if p >= most {
			return false
		}
		for ; next < p; next++ {
			to[next] = noSlot
		}
		to[next] = v
		next++
	}
	for ; next < len(to); next++ {
		to[next] = noSlot
	}
	return true
}
