// Region: the memory in which records are collected and sorted.
//
//	mem  | text        | tail |   free   | entries |
//	     0             text   text+tail  len(mem)-16n
//
// The text holds whole stored records. The tail is what has been read of the next
// one, or of the next ones if there is no room for their entries.

package extsort

import (
	"context"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/keysort"
)

type region struct {
	mem  []byte
	text int // bytes
	tail int // bytes
	n    int // entries
	seq  int // of all fills of all regions

	longest int // bytes of the longest stored record ever
}

// maxRegionBytes keeps offsets in 32 bits.
const maxRegionBytes = min(1<<32-1<<20, 1<<(unsafe.Sizeof(uintptr(0))*8-2))

// entriesOf returns the last n entries that fit in mem, whose end must be a
// multiple of 16. It and index.at are the package's conversions of memory.
func entriesOf(mem []byte, n int) []keysort.Entry {
	if n == 0 {
		return nil
	}
	first := mem[len(mem)-n*keysort.EntryBytes:]
	return unsafe.Slice((*keysort.Entry)(unsafe.Pointer(unsafe.SliceData(first))), n)
}

// entries returns the entries, the last record's first.
func (r *region) entries() []keysort.Entry { return entriesOf(r.mem, r.n) }

func (r *region) free() int { return len(r.mem) - r.n*keysort.EntryBytes - r.text - r.tail }

func (r *region) clear() { r.text, r.tail, r.n = 0, 0, 0 }

// takeTail moves the tail of from to the beginning of r, which is empty.
func (r *region) takeTail(from *region) {
	tail := from.mem[from.text:][:from.tail]
	from.tail = 0
	r.clear()
	r.tail = copy(r.mem, tail)
}

// add appends the entry of the record that is next in the text, whose bytes to
// compare are n at offset at. It needs room.
func (r *region) add(at, n, size int) {
	r.n++
	entriesOf(r.mem, r.n)[0] = keysort.Entry{Word: keysort.Word(r.mem[at:at+n], 0), At: uint32(at), N: uint32(n)}
	r.text += size
	r.longest = max(r.longest, size)
}

// sort sorts the entries in up to pieces parts, and returns these.
func (r *region) sort(ctx context.Context, l *layout, pieces int, stop *atomic.Bool) ([][]keysort.Entry, error) {
	e := r.entries()
	slices.Reverse(e)
	ties := 0
	if l.ties {
		ties = 1
		if l.descending {
			ties = -1
		}
	}
	pieces = max(1, min(pieces, len(e)/minPiece))
	sorted := make([][]keysort.Entry, pieces)
	err := all(ctx, pieces, func(_ context.Context, i int) error {
		p := e[len(e)/pieces*i : len(e)/pieces*(i+1)]
		if i == pieces-1 {
			p = e[len(e)/pieces*i:]
		}
		sorter := keysort.Sorter{Text: r.mem[:r.text], Ties: ties, Stop: stop}
		sorter.Sort(p)
		if l.descending {
			slices.Reverse(p)
		}
		sorted[i] = p
		return nil
	})
	return sorted, err
}

const minPiece = 4096 // entries that are worth a goroutine
