// Directory: extendible hashing.
//
//	directory | table | table | table | ... |      2^depth references of a word each
//	               \     /
//	                a table whose entries agree in depth-1 bits of their hashes
//
// The top bits of a hash are the index of its table. A full table grows until it has the greatest
// size, and then splits in two by the next bit of the hash. So a Put moves the entries of at most
// one table, and copies the directory when that doubles.
//
// Hashes are random, so tables of one greatest size would all split when the map reaches some
// length, and then be half empty. Therefore each eighth of the hashes has another greatest size,
// from 8/8 to 4.5/8: whatever the map's length, tables are two thirds full on average.

package hashmap

import (
	"sync"
	"unsafe"

	"github.com/freehold-go/freehold/internal/container"
)

// core is the part of a Map that does not depend on types.
//
// Invariants (check verifies them):
//   - depth >= 1, and the directory has 1<<depth references
//   - 2^n neighbouring references refer to a table, from a multiple of 2^n on, and the hashes of
//     its entries have these indexes
//   - bytes is the sum of the blocks from the parent, without the blocks of huge
type core struct {
	dir   unsafe.Pointer // the directory; nil unless the map is open
	shift uint8          // of a hash, for the index of its table: 64 - depth
	texts bool           // keys are strings, values have a size, and the map is open
	owned bool           // the map owns copies of keys or values: see text.go
	scheme

	valueKind textKind
	pairs     bool    // a string key and its text value share a block: see text.go
	keyLimit  uintptr // the greatest length of a string key that a reference has
	head      uintptr // bytes before a string key in its block
	align     int     // of blocks with string keys

	len     int
	tables  int // 0 if the directory is emptyDirectory
	slots   int // in all tables
	moved   int // entries moved by growth
	bytes   int // from parent, without those of huge
	huge    hugeTables
	cursors *cursor
	reading sync.Mutex // guards cursors among readers; a writer runs alone
	base    container.Base
}

// emptyDirectory is the directory of a map without memory. Its table never has entries: insert
// replaces it.
var emptyDirectory = func() *[2]unsafe.Pointer {
	b := make([]uint64, 2*tableAlign/8)
	pad := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) & refMask
	g := unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), pad)
	return &[2]unsafe.Pointer{g, g}
}()

const minDepth = 1

// entry returns the reference at an index of the directory.
func (c *core) entry(i uint64) *unsafe.Pointer {
	return (*unsafe.Pointer)(unsafe.Add(c.dir, uintptr(i)*unsafe.Sizeof(c.dir)))
}

// tableOf returns the table for hash h.
func (c *core) tableOf(h uint64) table { return table{*c.entry(h >> (c.shift & 63))} }

// setEntry sets a reference without a write barrier: the collector does not scan the directory.
func (c *core) setEntry(i uint64, t table) {
	*(*uintptr)(unsafe.Pointer(c.entry(i))) = uintptr(t.ref)
}

func (c *core) depth() uint { return uint(64 - c.shift) }

// span returns the indexes [from, to) of all references to the table for hash h.
func (c *core) span(h uint64) (from, to uint64) {
	i := h >> (c.shift & 63)
	ref := *c.entry(i)
	n := uint64(1)
	for from = i; ; { // 2n references to a table begin at a multiple of 2n
		up := from &^ (2*n - 1)
		if 2*n > 1<<c.depth() || *c.entry(up) != ref || *c.entry(up + 2*n - 1) != ref {
			return from, from + n
		}
		from, n = up, 2*n
	}
}

// reset sets the directory of a map without memory.
func (c *core) reset() {
	c.dir, c.shift = unsafe.Pointer(emptyDirectory), 64-minDepth
	c.tables, c.slots = 0, 0
}

// eachTable calls fn with each table, in the order of hashes.
func (c *core) eachTable(fn func(t table)) {
	if c.tables == 0 {
		return
	}
	for i, next := uint64(0), uint64(0); i < 1<<c.depth(); i = next {
		_, next = c.span(i << (c.shift & 63))
		fn(table{*c.entry(i)})
	}
}

// limit returns the greatest class of a table whose least hash is h.
func (l *layout) limit(h uint64) uintptr { return uintptr(l.limits[h>>61]) }
