// Growth of a Shared: a table without a place for an entry is replaced.
//
//	entries                 class             replaced by
//	less than 13/16         any               one of its class, with entries nearer to their homes
//	more                    below the limit   one with twice the groups
//	more                    the limit         two, by the next bit of the hash
//
// While there are fewer than four tables for each processor, tables of earlyClass split too.
//
// A Put copies at most one table at a time, of up to 16 KiB. All memory is allocated first, so an
// error leaves the map unchanged.
//
// If hashes agree in many bits, splits would not help and the directory would double forever. So if
// the directory would have sparseEntries for each table, the table grows beyond the limit.

package hashmap

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
)

// makeRoom replaces the locked table of a hash, which has no place for it, and unlocks it. again
// says that the same call has replaced a table before.
func (m *Shared[K, V]) makeRoom(x held, h uint64, again bool) error {
	defer m.leave(x)
	depth, class := x.head().depth, x.class()
	limit := m.limit(h >> (64 - depth) << (64 - depth))
	switch {
	case !again && x.head().live*16 < uintptr(x.slots())*13:
		return m.replace(x, h, [2]uintptr{class}, depth)
	case class >= earlyClass && depth < fullDepth(): // split
	case class < limit && !m.isHuge(x.table):
		return m.replace(x, h, [2]uintptr{min(doubleClass(class), limit)}, depth)
	case m.isSparse(depth):
		return m.replace(x, h, [2]uintptr{nextClass(class)}, depth)
	}
	return m.replace(x, h, m.halves(x, h), depth+1)
}

// doubleClass returns the class with twice the groups. Smaller steps would keep more replaced tables:
// with growth by half, these take twice the memory of the last table.
func doubleClass(of uintptr) uintptr {
	if of < 8 {
		return 2*of + 1
	}
	return min(of+8, fineClasses)
}

// halves returns the classes of the two tables that replace a full one.
func (m *sharedTables) halves(x held, h uint64) [2]uintptr {
	shift := 64 - x.head().depth
	first := h >> shift << shift
	return [2]uintptr{min(x.class(), m.limit(first)), min(x.class(), m.limit(first|1<<(shift-1)))}
}

func (m *sharedTables) isHuge(t table) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.huge.has(uintptr(t.base()))
}

// isSparse reports whether a table of the given depth must not split, because the directory would
// have too many entries for its tables.
func (m *sharedTables) isSparse(depth uintptr) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return depth >= depthOf(m.dir.Load()) && 1<<(depth+1) > sparseEntries*m.tables
}

// replace replaces the locked table of a hash by one table of a class and the same depth, or by two
// if depth is one more. A table has a greater class if its entries need it. replace does not unlock
// the table.
func (m *Shared[K, V]) replace(x held, h uint64, classes [2]uintptr, depth uintptr) error {
	shift, n := 64-depth, int(depth-x.head().depth+1)
	m.fit(x.table, classes[:n], shift)
	to, err := m.takeSome(classes[:n])
	if err != nil {
		return err
	}
	for _, t := range to[:n] {
		t.reset(depth)
	}
	var live, text [2]uintptr
	for i := range x.groups() {
		for entries := x.full(i); entries != 0; entries &= entries - 1 {
			from := x.table.at(&m.layout, i, first(entries)).key
			h := m.hashOfKey(from)
			n := int(h>>shift) & (n - 1)
			at, ok := to[n].place(&m.layout, h, to[n].groups())
			if !ok {
				panic("freehold: hashmap: a table that grew is full") // fit has seen to that
			}
			m.copySlot(at.key, from)
			live[n]++
			if !m.direct {
				var texts [2]ref
				text[n] += textBytes(m.appendTexts(texts[:0], from)...)
			}
		}
	}
	for i, t := range to[:n] {
		t.head().count(live[i], text[i])
	}
	m.seam.At(copied)
	return m.publish(x, h, to[:n])
}

// fit raises the classes of the tables that replace t, so that each has room for its entries. If
// each would have room for all of t, it does not count them.
func (m *sharedTables) fit(t table, of []uintptr, shift uintptr) {
	fits := true
	for _, class := range of {
		fits = fits && t.head().live <= uintptr(classes[class].groups)*groupSlots
	}
	if fits {
		return
	}
	var counts [2]int
	nans := 0 // each has another hash when replace asks again
	m.eachSlot(t, func(slot unsafe.Pointer) {
		if h := m.hashOfKey(slot); m.isNaN(slot, h) {
			nans++
		} else {
			counts[int(h>>shift)&(len(of)-1)]++
		}
	})
	for i, n := range counts[:len(of)] {
		n += nans
		of[i] = max(of[i], classFor(n, true))
	}
}

// takeSome takes tables of the classes. On an error it takes none.
func (m *sharedTables) takeSome(classes []uintptr) (to [2]table, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, class := range classes {
		if to[i], err = m.take(class, class >= m.limit(math.MaxUint64)); err != nil {
			for _, t := range to[:i] {
				m.give(t)
			}
			return to, err
		}
	}
	return to, nil
}

// publish replaces the locked table of a hash in the directory by one or two tables.
func (m *sharedTables) publish(x held, h uint64, to []table) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := x.head().depth
	if err := m.deepen(to[0].head().depth); err != nil {
		for _, t := range to {
			m.give(t)
		}
		return err
	}
	dir := m.dir.Load()
	first := h >> (64 - old) << (64 - old)
	count := uint64(1) << (depthOf(dir) - old)
	for i := range count {
		entryFor(dir, first+i<<(dir&classMask)).Store(uintptr(to[uint64(len(to))*i/count].ref))
		m.seam.At(published)
	}
	m.tables += len(to) - 1
	m.give(x.table)
	return nil
}

// Grow makes room for n more entries, so that few of the next Puts replace a table; any of them
// still may. It takes as little memory as [Map.Grow]. Blocks of strings, bytes and large values are
// taken by each Put. Grow takes time proportional to the map's length. Grow panics if n is negative.
//
// An error matches [freehold.ErrOutOfMemory]; the entries are then unchanged. The map keeps the
// memory that it has taken, and the next Puts may fail.
func (m *Shared[K, V]) Grow(n int) error {
	m.base.MustBeOpen(&sharedKind, "Grow")
	arg.AtLeast("hashmap.Shared.Grow", "n", n, 0)
	length := m.Len()
	if n > (math.MaxInt-length)/int(m.groupBytes/(groupSlots/2)) {
		return fmt.Errorf("%w: %d more entries are more bytes than an int can hold", freehold.ErrOutOfMemory, n)
	}
	want := length + n
	depth, full := firstDepth(), fullDepth()
	for want>>depth >= roomIn(m.limit(math.MaxUint64), false) || depth < full && want>>depth >= roomIn(earlyClass, false) {
		depth++
	}
	m.mu.Lock()
	err := m.deepen(depth)
	m.mu.Unlock()
	for pos, more := uint64(0), true; more && err == nil; {
		m.neededPage().wait()
		x, ok := m.enter(pos)
		if !ok {
			err = m.create(pos, classFor(want>>depthOf(m.dir.Load())+1, false))
			continue
		}
		hd := x.head()
		switch class := classFor(want>>hd.depth+1, false); {
		case class > m.limit(pos): // so hd.depth < depth
			err = m.replace(x, pos, [2]uintptr{}, hd.depth+1)
		case class > x.class():
			err = m.replace(x, pos, [2]uintptr{class}, hd.depth)
		default:
			pos += 1 << (64 - hd.depth)
			more = pos != 0
		}
		m.leave(x)
	}
	return err
}

func (m *sharedTables) neededPage() *nextPage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.huge.needed()
}
