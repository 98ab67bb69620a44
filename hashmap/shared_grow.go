// Growth of a Shared: a table without room is replaced.
//
//	entries             class           replaced by
//	up to 7/8 of room   any             one of its class, without the room of deleted entries
//	more                below largest   one of the next class, twice the size
//	more                largest         two, by the next bit of the hash
//
// So a Put copies at most one table, of up to 16 KiB. All memory is allocated first; an error
// leaves the map unchanged.
//
// If hashes agree in many bits, splits would not help and the directory would double forever. So if
// the directory would have sparseEntries for each table, the table grows beyond the largest class.

package hashmap

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
)

// makeRoom replaces the locked table of a hash, which has no room, and unlocks it.
func (m *Shared[K, V]) makeRoom(x held, h uint64) error {
	defer m.leave(x)
	hd := headOf(x.e)
	class, depth := classOf(x.e), hd.depth
	switch {
	case hd.live <= roomOf(class)*7/8:
	case class < m.maxClass || m.isSparse(depth):
		class++
	default:
		depth++
		class = m.maxClass
		for roomOf(class) < hd.live { // in case all entries go to one side
			class++
		}
	}
	return m.replace(x, h, class, depth)
}

// isSparse reports whether a table of the given depth must not split, because the directory would
// have too many entries for its tables.
func (m *sharedTables) isSparse(depth uintptr) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return depth >= depthOf(m.dir.Load()) && 1<<(depth+1) > sparseEntries*m.tables
}

// replace replaces the locked table of a hash by one table of a class and the same depth, or by two
// if depth is one more. It does not unlock the table.
func (m *Shared[K, V]) replace(x held, h uint64, class, depth uintptr) error {
	var to [2]uintptr
	n := depth - headOf(x.e).depth + 1
	if err := m.takeSome(to[:n], class); err != nil {
		return err
	}
	for _, e := range to[:n] {
		m.reset(e, depth)
	}
	if n == 1 {
		to[1] = to[0]
	}
	m.eachSlot(x.e, func(_, from unsafe.Pointer) {
		h := m.hashAt(from)
		e := to[h>>(64-depth)&1]
		g, i := m.place(e, h)
		m.copySlot(m.slot(g, i), from)
		text := uintptr(0)
		if !m.direct {
			var texts [2]ref
			text = textBytes(m.appendTexts(texts[:0], from)...)
		}
		fill(e, g, i, h, text)
	})
	m.seam.At(copied)
	return m.publish(x, h, to, n)
}

// takeSome sets all entries to tables of a class. On an error it takes none.
func (m *sharedTables) takeSome(entries []uintptr, class uintptr) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range entries {
		e, err := m.take(class)
		if err != nil {
			for _, e := range entries[:i] {
				m.give(e)
			}
			return err
		}
		entries[i] = e
	}
	return nil
}

// publish replaces the locked table of a hash in the directory by n tables.
func (m *sharedTables) publish(x held, h uint64, to [2]uintptr, n uintptr) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := headOf(x.e).depth
	if err := m.deepen(headOf(to[0]).depth); err != nil {
		for _, e := range to[:n] {
			m.give(e)
		}
		return err
	}
	dir := m.dir.Load()
	first := h >> (64 - old) << (64 - old)
	count := uint64(1) << (depthOf(dir) - old)
	for i := range count {
		entryFor(dir, first+i<<(dir&classMask)).Store(to[2*i/count])
		m.seam.At(published)
	}
	m.tables += int(n) - 1
	m.give(x.e)
	return nil
}

// Grow makes room for n more entries, so that few of the next Puts replace a table; any of them
// still may. It takes the average memory of tables with n more entries, or up to a fifth more, and
// perhaps a huge page. Blocks of strings, bytes and large values are taken by each Put. Grow takes
// time proportional to the map's length. An error matches [freehold.ErrOutOfMemory]; the entries
// are then unchanged. Grow panics if n is negative.
func (m *Shared[K, V]) Grow(n int) error {
	m.mustBeOpen("Grow")
	arg.AtLeast("hashmap.Shared.Grow", "n", n, 0)
	length := m.Len()
	if n > math.MaxInt-length {
		return fmt.Errorf("%w: %d more entries are more than an int can count", freehold.ErrOutOfMemory, n)
	}
	n += length
	class, depth := uintptr(1), m.firstDepth()
	fits := func() bool {
		// If Puts would replace two of three tables by larger ones, Grow replaces all. That
		// is 6/5 of the memory that Puts would take. In a normal distribution two thirds are
		// above the mean minus 0.43 standard deviations.
		mean := float64(n) / float64(uint64(1)<<depth)
		return mean-0.43*math.Sqrt(mean) <= float64(roomOf(class))
	}
	for !fits() && class < m.maxClass {
		class++
	}
	for !fits() {
		depth++
	}
	if bytes := math.Ldexp(float64(m.layout.stride), int(class+depth)); bytes > math.MaxInt {
		return fmt.Errorf("%w: tables for %d entries take %.0f bytes", freehold.ErrOutOfMemory, n, bytes)
	}
	m.mu.Lock()
	err := m.deepen(depth)
	m.mu.Unlock()
	for pos, more := uint64(0), true; more && err == nil; {
		m.neededPage().wait()
		x, ok := m.enter(pos)
		if !ok {
			err = m.create(pos, class)
			continue
		}
		switch hd := headOf(x.e); {
		case hd.depth < depth:
			err = m.replace(x, pos, max(class, classOf(x.e)), hd.depth+1)
		case classOf(x.e) < class:
			err = m.replace(x, pos, class, hd.depth)
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
