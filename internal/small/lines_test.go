// Lines: the cache lines of simulated processors.
//
// A directory knows of each line of 64 bytes who holds a copy and who wrote it last, as the
// protocol MESI has it: a write takes away the copies of all others. Each processor has a cache of
// 1 MiB, in sets of 16 lines, and evicts the least recently used line of a set.

//go:build freehold_seams

package small

import "testing"

const (
	lineBytes = 64
	lineWays  = 16
	lineSets  = 1 << 20 / lineBytes / lineWays
	linesPage = 4 << 10 // of the directory
)

type line struct {
	holders uint64 // a bit for each processor with a copy
	writer  int8   // who wrote it last, counted from 1; 0 for nobody
}

type directory struct {
	pages  map[uintptr]*[linesPage / lineBytes]line
	caches []lineCache
}

// lineCache has the lines of each set, the most recently used one first. A copy that was taken away
// keeps its place until that is needed.
type lineCache [lineSets][lineWays]*line

func newDirectory(processors int) *directory {
	return &directory{map[uintptr]*[linesPage / lineBytes]line{}, make([]lineCache, processors)}
}

func (d *directory) line(addr uintptr) *line {
	page := d.pages[addr/linesPage]
	if page == nil {
		page = new([linesPage / lineBytes]line)
		d.pages[addr/linesPage] = page
	}
	return &page[addr%linesPage/lineBytes]
}

// access is one of processor p. It reports whether it is a transfer: another processor has written
// the line since p had it, or loses its copy. What p loads again only for want of room in its
// cache is none.
func (d *directory) access(p int, addr uintptr, write bool) (transfer bool) {
	l, me := d.line(addr), uint64(1)<<p
	transfer = l.holders&me == 0 && l.writer != 0 && int(l.writer) != p+1
	if write {
		transfer = transfer || l.holders&^me != 0
		l.holders, l.writer = me, int8(p+1)
	} else {
		l.holders |= me
	}
	set := &d.caches[p][addr/lineBytes%lineSets]
	last := l
	for i := range set {
		last, set[i] = set[i], last
		if last == l || last == nil {
			return transfer
		}
	}
	last.holders &^= me
	return transfer
}

func TestDirectory(t *testing.T) {
	d := newDirectory(3)
	for i, tt := range []struct {
		p               int
		write, transfer bool
		why             string
	}{
		{0, false, false, "nobody has written"},
		{1, false, false, "nobody has written"},
		{0, true, true, "the other loses its copy"},
		{0, true, false, "it has the line alone"},
		{0, false, false, "it has the line alone"},
		{1, false, true, "another one has written"},
		{1, false, false, "it has a copy"},
		{0, false, false, "its copy is still there"},
		{1, true, true, "the other loses its copy"},
		{2, true, true, "another one has written"},
	} {
		if got := d.access(tt.p, 64, tt.write); got != tt.transfer {
			t.Errorf("access %d by %d is a transfer: %t, though %s", i, tt.p, got, tt.why)
		}
	}
	for way := range uintptr(lineWays) { // the others of the set
		d.access(2, 64+(way+1)*lineSets*lineBytes, true)
	}
	if holders := d.line(64).holders; holders != 0 {
		t.Errorf("a full set still has the line: %b", holders)
	}
	if d.access(2, 64, false) {
		t.Error("to load what its own cache had no room for is a transfer")
	}
}
