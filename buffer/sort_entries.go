// Gather: sorting frames by entries that point to them.
//
//	data     | batch 0 | batch 1 | batch 2 |
//	scratch  | sorted batch        | entries of the batch |
//
// A batch is the frames of a share that fit in scratch together with 16 bytes each, usually a
// third of the share. internal/keysort, or mergeSort with the user's comparison, sorts its
// entries. Then its frames are gathered in scratch in the order of the entries, and copied back.
// Batches are merged from right to left, so the left run is always one batch, which fits in
// scratch.

package buffer

import (
	"bytes"
	"math"
	"slices"
	"unsafe"

	"github.com/freehold-go/freehold/internal/keysort"
)

const entryBytes = keysort.EntryBytes

// gather is the algorithm for all records that radix and mergeSort cannot move.
type gather struct{ *merger }

func (g *gather) sort(data, scratch []byte) int {
	type piece struct{ begin, last int }
	var batches []piece
	for at := 0; at < len(data) && !g.stop.Load(); {
		size, last := g.sortBatch(data[at:], scratch)
		batches = append(batches, piece{at, last})
		at += size
		g.tick(size)
	}
	if g.stop.Load() {
		return 0
	}
	last := batches[len(batches)-1].last
	for i := len(batches) - 2; i >= 0; i-- {
		begin := batches[i].begin
		last = g.merge(data[begin:], batches[i+1].begin-begin, [2]int{batches[i].last, last}, scratch, 1)
	}
	return last
}

// sortBatch sorts the first frames of data, up to the room in scratch. It returns the size of
// them all, and of the last one.
func (g *gather) sortBatch(data, scratch []byte) (size, last int) {
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(scratch)))) & (entryBytes - 1)
	room := elements[keysort.Entry](scratch[skip:])
	first := len(room)
	for size < len(data) {
		n := g.layout.frame(data[size:])
		free := first - 1 // sorting needs room for as many entries again
		if size+n > free*entryBytes || uint64(size+n) > math.MaxUint32 || free < len(room)-free {
			break
		}
		first--
		room[first] = g.entry(data, size)
		size += n
	}
	if size == 0 { // the frame is too large
		n := g.layout.frame(data)
		return n, n
	}
	entries := room[first:]
	slices.Reverse(entries)
	g.sortEntries(data[:size], entries, room[:first])
	last = len(g.frame(data, entries[len(entries)-1]))
	if g.stop.Load() || inPlace(entries) {
		return size, last
	}
	g.copyFrames(scratch[:size], data[:size], entries)
	copy(data, scratch[:size])
	return size, last
}

// inPlace reports whether the entries are in the order of their frames.
func inPlace(entries []keysort.Entry) bool {
	for i := 1; i < len(entries); i++ {
		if entries[i].At <= entries[i-1].At { // equal offsets: two equal records share one
			return false
		}
	}
	return true
}

// entry returns the entry of the frame at offset at of data. Its At is the offset of the record,
// even if the key is elsewhere.
func (g *gather) entry(data []byte, at int) keysort.Entry {
	record := g.layout.record(data[at:])
	e := keysort.Entry{At: uint32(at + g.layout.head), N: uint32(len(record))}
	if g.cmp == nil {
		key := g.keyOf(record)
		e.Word, e.N = keysort.Word(key, 0), uint32(len(key))
	}
	return e
}

// frame returns the frame of an entry.
func (g *gather) frame(data []byte, e keysort.Entry) []byte {
	from := data[int(e.At)-g.layout.head:]
	if g.key == nil {
		return from[:g.layout.frameOf(int(e.N))]
	}
	return from[:g.layout.frame(from)]
}

// copyFrames copies frames from data to out in the order of their entries. It touches several
// frames ahead, as their sizes may be in them. The result only makes the compiler keep that.
func (g *gather) copyFrames(out, data []byte, entries []keysort.Entry) (touched uint) {
	const usual = 64 // copying this many bytes is as fast as fewer
	n := 0
	for i, e := range entries {
		if i%keysort.Ahead == 0 {
			for _, e := range entries[i:min(i+keysort.Ahead, len(entries))] {
				touched += uint(data[int(e.At)-g.layout.head])
			}
		}
		from := g.frame(data, e)
		if to := out[n:]; len(from) <= usual && cap(from) >= usual && len(to) >= usual {
			*(*[usual]byte)(to) = *(*[usual]byte)(from[:usual])
		} else {
			copy(to, from)
		}
		n += len(from)
	}
	return touched
}

// sortEntries sorts the entries of data's frames. room has an element for each of them.
func (g *gather) sortEntries(data []byte, entries, room []keysort.Entry) {
	if g.cmp != nil {
		m := mergeSort[keysort.Entry]{g.merger, data}
		m.sortElements(entries, room, false)
		return
	}
	s := keysort.Sorter{Text: data, Stop: &g.stop}
	if g.key != nil {
		s.Ties = 1 // records with equal keys may differ
		s.Key = func(e keysort.Entry) []byte {
			key := g.key(g.layout.record(data[int(e.At)-g.layout.head:]))
			return key[:min(len(key), int(e.N))]
		}
	}
	s.Sort(entries)
}

// head is the first frame of a run.
type head struct {
	frame []byte
	key   []byte // the record, if there is a cmp
	word  uint64
}

// set makes h the frame at the beginning of data.
func (g *gather) set(h *head, data []byte) {
	h.frame = data[:g.layout.frame(data)]
	h.key = g.layout.record(h.frame)
	if g.cmp == nil {
		h.key = g.keyOf(h.key)
		h.word = keysort.Word(h.key, 0)
	}
}

func (g *gather) less(a, b *head) bool {
	switch {
	case g.cmp != nil:
		return g.cmp(a.key, b.key) < 0
	case a.word != b.word:
		return a.word < b.word
	}
	return bytes.Compare(a.key, b.key) < 0
}

func (g *gather) mergePiece(out, left []byte) (leftLast bool) {
	w, i, j := 0, 0, len(left)
	defer func() { leftLast = copy(out[w:], left[i:]) > 0 }()
	if i == len(left) || j == len(out) {
		return
	}
	var a, b head
	g.set(&a, left)
	g.set(&b, out[j:])
	for !g.stop.Load() {
		if g.less(&b, &a) {
			w += copy(out[w:], b.frame)
			if j += len(b.frame); j == len(out) {
				return
			}
			g.set(&b, out[j:])
		} else {
			w += copy(out[w:], a.frame)
			if i += len(a.frame); i == len(left) {
				return
			}
			g.set(&a, left[i:])
		}
	}
	return
}
