// Gather: sorting frames by entries that point to them.
//
//	data     | batch 0 | batch 1 | batch 2 |
//	scratch  | sorted batch        | entries of the batch |
//
// A batch is as much of a share as fits into scratch together with 16 bytes for
// each frame, usually a third. Its entries are sorted, then its frames are gathered in
// scratch in the order of the entries, and copied back. Then batches are merged from
// the right, so that the left run is always a single batch, which fits into scratch.
//
// An entry has 8 bytes of the key. Entries are sorted by these with the radix sort of
// records of 16 bytes. Only where they are equal are the frames read: what their keys
// have in common is skipped, then come the next 8 bytes. Keys that end are padded with
// zeros, so "a" and "a\0" have the same words.
// Among equal words, keys that end in this word come first, shorter ones before longer.

package buffer

import (
	"bytes"
	"math"
	"slices"
	"unsafe"

	"github.com/freehold-go/freehold/internal/keysort"
)

type entry struct {
	word uint64 // the part of the key that is sorted by next
	at   uint32 // offset of the frame in its batch
	size uint32 // of the frame
}

const (
	entryBytes = int(unsafe.Sizeof(entry{}))
	wordBytes  = 8
)

// gather is the algorithm of records that radix and mergeSort do not move.
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

// sortBatch sorts as many of data's frames as scratch allows. It returns their size
// and that of the last one.
func (g *gather) sortBatch(data, scratch []byte) (size, last int) {
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(scratch)))) & (entryBytes - 1)
	room := elements[entry](scratch[skip:])
	first := len(room)
	for size < len(data) {
		n := g.layout.frame(data[size:])
		free := first - 1 // of which sorting needs as much as there are entries
		if size+n > free*entryBytes || uint64(size+n) > math.MaxUint32 || free < len(room)-free {
			break
		}
		first--
		room[first] = entry{g.word(data[size:]), uint32(size), uint32(n)}
		size += n
	}
	if size == 0 { // the frame is too large
		n := g.layout.frame(data)
		return n, n
	}
	entries := room[first:]
	slices.Reverse(entries)
	g.sortEntries(data[:size], entries, room[:first])
	last = int(entries[len(entries)-1].size)
	if g.stop.Load() || slices.IsSortedFunc(entries, func(a, b entry) int { return int(a.at) - int(b.at) }) {
		return size, last
	}
	copyFrames(scratch[:size], data[:size], entries)
	copy(data, scratch[:size])
	return size, last
}

// copyFrames copies frames from data to out in the order of their entries.
func copyFrames(out, data []byte, entries []entry) {
	const usual = 64 // bytes that are copied as fast as fewer
	n := 0
	for _, e := range entries {
		from, to := data[e.at:], out[n:]
		if e.size <= usual && len(from) >= usual && len(to) >= usual {
			*(*[usual]byte)(to) = *(*[usual]byte)(from)
		} else {
			copy(to, from[:e.size])
		}
		n += int(e.size)
	}
}

// sortEntries sorts the entries of data's frames, with room for as many.
func (g *gather) sortEntries(data []byte, entries, room []entry) {
	if g.cmp != nil {
		m := mergeSort[entry]{g.merger, data}
		m.sortElements(entries, room, false)
		return
	}
	word := load{little: littleEndian}
	b := batch{g.merger, data, radix[entry]{g.merger, []load{word}}}
	if !inOrder(g.job, entries, b.less) {
		b.sort(entries, room, 0)
	}
}

// word returns the first word of the key of the frame at the beginning of data.
func (g *gather) word(data []byte) uint64 {
	if g.cmp != nil {
		return 0
	}
	return keysort.Word(g.keyOf(g.layout.record(data)), 0)
}

// batch sorts the entries of its frames by their keys.
type batch struct {
	*merger
	data   []byte
	byWord radix[entry]
}

// rest returns the key of e from depth on.
func (b *batch) rest(e *entry, depth int) []byte {
	key := b.keyOf(b.layout.record(b.data[e.at:]))
	return key[min(depth, len(key)):]
}

// less compares entries that have the first words of their keys.
func (b *batch) less(x, y *entry) bool {
	if x.word != y.word {
		return x.word < y.word
	}
	return bytes.Compare(b.rest(x, 0), b.rest(y, 0)) < 0
}

// sort sorts entries whose words are those at depth, and whose keys are the same
// before.
func (b *batch) sort(entries, room []entry, depth int) {
	for !b.stop.Load() {
		b.byWord.spread(entries, room[:len(entries)], false, 0, false)
		if len(entries) < 2 {
			return
		}
		if entries[0].word == entries[len(entries)-1].word {
			entries, depth = b.longer(entries, room, depth)
			continue
		}
		for i := 0; i < len(entries); {
			begin := i
			for i++; i < len(entries) && entries[i].word == entries[begin].word; i++ {
			}
			if same := entries[begin:i]; len(same) > 1 {
				rest, restDepth := b.longer(same, room, depth)
				b.sort(rest, room, restDepth)
			}
		}
		return
	}
}

// longer takes entries whose words at depth are the same. It puts those first whose
// keys end there, by length. It returns the others with the words at the depth where
// their keys differ next, and this depth.
func (b *batch) longer(entries, room []entry, depth int) ([]entry, int) {
	depth += wordBytes
	ended := 0
	var common []byte // of all keys from depth on
	for i := range entries {
		e := &entries[i]
		rest := b.rest(e, depth-wordBytes)
		e.word = uint64(min(len(rest), wordBytes+1))
		switch {
		case e.word <= wordBytes:
			ended++
		case i == ended: // the first that is longer
			common = rest[wordBytes:]
		default:
			common = common[:keysort.Common(common, rest[wordBytes:])]
		}
	}
	if ended > 0 {
		b.byWord.spread(entries, room[:len(entries)], false, 0, false)
	}
	entries = entries[ended:]
	depth += len(common)
	for i := range entries {
		e := &entries[i]
		e.word = keysort.Word(b.rest(e, depth), 0)
	}
	return entries, depth
}

// head is the first frame of a run.
type head struct {
	frame []byte
	key   []byte // or the record, if that is compared
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
