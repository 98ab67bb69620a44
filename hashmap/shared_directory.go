// Directory of a Shared: extendible hashing as in directory.go, and the memory of tables.
//
//	m.dir       address of the directory | 64 - depth
//	directory   2^depth entries of a word each: a table's address | its class
//
// An entry is 0 until a key is put there. mu is held to change entries, so the holder of mu sees a
// constant directory. A table is replaced under mu and its lock. So the holder of a table's lock
// may write to the table if it finds it in the directory.
//
// When the directory doubles, the new one is published first. Then, still under mu, all entries of
// the old one become replacedDirectory. So an entry that refers to a table is current in whichever
// directory it was found.
//
// Old directories are kept, as readers may still use them. Together they are smaller than the
// current one.

package hashmap

import (
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/container"
	"github.com/freehold-go/freehold/internal/seam"
)

// sharedTables is the part of a Shared that does not depend on its types.
type sharedTables struct {
	base   container.Base
	dir    atomic.Uintptr // 0 if NewShared did not make the map
	direct bool           // neither keys nor values are text
	seam   seam.Seam
	locks  sharedLocks
	scheme
	_ [lineBytes]byte // fields above are read by readers, fields below are written

	mu       sync.Mutex
	dirs     []uintptr              // all directories, as in dir; the last is the current one
	spare    [classMask + 1][]table // replaced tables, by class
	tables   int                    // in the directory
	reserved int                    // bytes from the parent, without text and huge
	huge     hugeTables             // memory for tables of the greatest classes

	_       [lineBytes]byte
	retired retireList
}

const replacedDirectory = 1

const (
	maxShards     = 1 << 10
	earlyClass    = 3       // of 4 groups
	copiedBytes   = 1 << 20 // the most bytes of K and V in a table of more than minGroups: All copies them
	sparseEntries = 64      // the directory does not double if it has this many entries for each table
)

// noDirectory is the directory of a map without memory: two empty entries.
var noDirectory [2 * lineBytes / wordBytes]uintptr

func noDirectoryWord() uintptr {
	return (uintptr(unsafe.Pointer(&noDirectory))+classMask)&^classMask | 63
}

func (m *sharedTables) init(keyBytes, valueBytes, entryBytes uintptr) {
	m.layout = sharedLayout(keyBytes, valueBytes)
	m.setLimits(min(tableBytes, copiedBytes/max(entryBytes, 1)*max(m.layout.groupBytes/groupSlots, 1)))
	m.huge.init(m.sharedBytes(m.limit(0)))
	m.dir.Store(noDirectoryWord())
}

func depthOf(dir uintptr) uintptr { return 64 - dir&classMask }

// entryFor returns the address of a hash's entry in a directory.
func entryFor(dir uintptr, h uint64) *atomic.Uintptr {
	return (*atomic.Uintptr)(pointer(dir&^classMask + uintptr(h>>(dir&classMask))*wordBytes))
}

// lookUp returns a hash's entry and its address.
func (m *sharedTables) lookUp(h uint64) (at *atomic.Uintptr, e uintptr) {
	for {
		at = entryFor(m.dir.Load(), h)
		m.seam.At(readDirectory)
		if e = at.Load(); e != replacedDirectory {
			runtime.KeepAlive(m)
			return at, e
		}
	}
}

// held is a table whose lock is held, the address of its entry, and the home of the hash for which
// it was locked.
type held struct {
	table
	at       *atomic.Uintptr
	homeTags uintptr // the address of the home's tags
	homeKeys uintptr // and of its first key
}

// enter locks the table for a hash. It reports false if there is no table.
func (m *sharedTables) enter(h uint64) (x held, ok bool) {
	for {
		at, e := m.lookUp(h)
		m.seam.At(lookedUp)
		if e == 0 {
			return held{}, false
		}
		// The lock is a barrier: the home's lines would be loaded only after the lock's line.
		tags, keys := homeAhead(m, e, h)
		t := tableAt(e)
		m.lock(t)
		if at.Load() == e {
			return held{t, at, tags, keys}, true
		}
		m.unlock(t)
	}
}

func (m *sharedTables) leave(x held) {
	m.unlock(x.table)
	runtime.KeepAlive(m)
}

// enterNew is enter, but makes a table if there is none.
func (m *sharedTables) enterNew(h uint64) (held, error) {
	for {
		if x, ok := m.enter(h); ok {
			return x, nil
		}
		if err := m.create(h, 0); err != nil {
			return held{}, err
		}
	}
}

// create makes a table of the given class for a hash, unless there is a table.
func (m *sharedTables) create(h uint64, class uintptr) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.deepen(firstDepth()); err != nil {
		return err
	}
	at, e := m.lookUp(h)
	if e != 0 {
		return nil
	}
	t, err := m.take(class, class > 0)
	if err != nil {
		return err
	}
	t.reset(depthOf(m.dir.Load()))
	m.tables++
	at.Store(uintptr(t.ref))
	return nil
}

// fullDepth is the depth of about four tables for each processor, with which writers rarely wait
// for each other.
func fullDepth() uintptr { return depthFor(4 * runtime.GOMAXPROCS(0)) }

// firstDepth is the depth of the first directory. On many processors it is less than fullDepth, as
// small tables take much memory for each entry: tables of earlyClass split until fullDepth.
func firstDepth() uintptr {
	n := runtime.GOMAXPROCS(0)
	return depthFor(min(4*n, max(n, 32)))
}

func depthFor(tables int) uintptr { return uintptr(bits.Len(uint(min(tables, maxShards) - 1))) }

// deepen grows the directory to at least the given depth. mu is held.
func (m *sharedTables) deepen(depth uintptr) error {
	old := m.dir.Load()
	if len(m.dirs) > 0 && depthOf(old) >= depth {
		return nil
	}
	if depth >= 8*wordBytes-4 {
		return fmt.Errorf("%w: a directory of 2^%d references", freehold.ErrOutOfMemory, depth)
	}
	p, err := m.allocTable(wordBytes << depth)
	if err != nil {
		return err
	}
	d := uintptr(p) | (64 - depth)
	for i := range uint64(1) << depth {
		h := i << (64 - depth)
		entryFor(d, h).Store(entryFor(old, h).Load())
	}
	m.dir.Store(d)
	m.seam.At(deepened)
	if len(m.dirs) > 0 {
		for i := range uint64(1) << depthOf(old) {
			entryFor(old, i<<(64-depthOf(old))).Store(replacedDirectory)
		}
	}
	m.dirs = append(m.dirs, d)
	return nil
}

// take returns a spare or new table of a class, in a huge page if lasting is set. Its versions are
// valid, its other contents undefined. mu is held.
func (m *sharedTables) take(class uintptr, lasting bool) (table, error) {
	if last := len(m.spare[class]) - 1; last >= 0 {
		t := m.spare[class][last]
		m.spare[class] = m.spare[class][:last]
		return t, nil
	}
	size := m.sharedBytes(class)
	var p unsafe.Pointer
	if lasting {
		p = m.huge.take(m.base.Parent, size, uintptr(m.reserved+m.huge.bytes))
	}
	if p == nil {
		var err error
		if p, err = m.allocTable(size); err != nil {
			return table{}, err
		}
	}
	clear(unsafe.Slice((*byte)(p), frontBytes+uintptr(classes[class].groups)*sharedHeadBytes))
	return table{unsafe.Add(p, frontBytes+sharedClass+class)}, nil
}

// give makes a table spare. mu is held.
func (m *sharedTables) give(t table) { m.spare[t.class()] = append(m.spare[t.class()], t) }

// allocTable returns a block of the parent, for a table or a directory. mu is held.
func (m *sharedTables) allocTable(size uintptr) (unsafe.Pointer, error) {
	if size > math.MaxInt {
		return nil, fmt.Errorf("%w: %d bytes of tables", freehold.ErrOutOfMemory, size)
	}
	p, err := m.alloc(size, tableAlign)
	if err == nil {
		m.reserved += int(size)
	}
	return p, err
}

// freeTable returns a block of allocTable to the parent. mu is held.
func (m *sharedTables) freeTable(addr, size uintptr) {
	m.reserved -= int(size)
	m.free(pointer(addr), size)
}

// alloc returns a block from the parent. If the parent refuses, alloc frees the texts whose readers
// have left, and asks once more if this or another goroutine has freed any meanwhile.
func (m *sharedTables) alloc(size uintptr, align int) (unsafe.Pointer, error) {
	freed := m.retired.freed.Load()
	b, err := m.base.Parent.Alloc(int(size), align)
	if err != nil && m.retired.reclaim(m) != freed {
		b, err = m.base.Parent.Alloc(int(size), align)
	}
	return unsafe.Pointer(unsafe.SliceData(b)), container.Refused(err)
}

// free returns a block to the parent.
func (m *sharedTables) free(p unsafe.Pointer, size uintptr) {
	m.base.Parent.Free(unsafe.Slice((*byte)(p), int(size)))
}

// visit locks the table at position pos, calls f, and returns the position of the next table. It
// returns 0 and false after the last table. A position is the least hash of a table. A loop over all
// tables begins at 0, or at any position and ends when it is there again.
func (m *sharedTables) visit(pos uint64, f func(x held)) (next uint64, more bool) {
	for {
		dir := m.dir.Load()
		if entryFor(dir, pos).Load() == 0 {
			runtime.KeepAlive(m)
			next = pos + 1<<(dir&classMask)
			return next, next != 0
		}
		if x, ok := m.enter(pos); ok {
			defer m.leave(x)
			f(x)
			next = pos + 1<<(64-x.head().depth)
			return next, next != 0
		}
	}
}

// leastHash returns a position: the least hash of the table for h or, without a table, of the
// directory's entry for h. It stays a position, because tables split but never join.
func (m *sharedTables) leastHash(h uint64) uint64 {
	shift := m.dir.Load() & classMask
	if x, ok := m.enter(h); ok {
		shift = 64 - x.head().depth
		m.leave(x)
	}
	return h >> shift << shift
}

// each calls f with each table. mu is held.
func (m *sharedTables) each(f func(t table)) {
	for pos, more := uint64(0), true; more; {
		dir := m.dir.Load()
		e := entryFor(dir, pos).Load()
		step := uint64(1) << (dir & classMask)
		if e != 0 {
			t := tableAt(e)
			f(t)
			step = 1 << (64 - t.head().depth)
		}
		pos += step
		more = pos != 0
	}
}

// holds reports whether the map has memory of the parent.
func (m *sharedTables) holds() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reserved > 0
}

// close returns all tables and directories to the parent.
func (m *sharedTables) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.each(m.give)
	m.dir.Store(noDirectoryWord())
	for class, tables := range m.spare {
		for _, t := range tables {
			if !m.huge.has(uintptr(t.base())) {
				m.freeTable(uintptr(t.base())-frontBytes, m.sharedBytes(uintptr(class)))
			}
		}
	}
	for _, d := range m.dirs {
		m.freeTable(d&^classMask, wordBytes<<depthOf(d))
	}
	m.huge.close(m.base.Parent)
	m.spare, m.dirs, m.tables = [classMask + 1][]table{}, nil, 0
}
