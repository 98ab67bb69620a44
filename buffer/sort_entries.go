// Gather: sorting frames by entries that point to them.
//
//	data     | chunk 0 | chunk 1 | chunk 2 |
//	scratch  | sorted chunk        | entries of the chunk |
//
// A chunk is as much of a share as fits into scratch together with 16 bytes for
// each frame, usually a third. Its entries are sorted, then its frames are gathered in
// scratch in the order of the entries, and copied back. Then chunks are merged from
// the right, so that the left run is always a single chunk, which fits into scratch.
//
// An entry has 8 bytes of the key. Entries are sorted by these with the radix sort of
// records of 16 bytes. Only where they are equal are the next 8 bytes read from the
// frames. Keys that end are padded with zeros, so "a" and "a\0" have the same words.
// Among equal words, keys that end in this word come first, shorter ones before longer.

package buffer

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"unsafe"
)

type entry struct {
	word uint64 // the part of the key that is sorted by next
	at   uint32 // offset of the frame in its chunk
	size uint32 // of the frame
}

const (
	entryBytes = int(unsafe.Sizeof(entry{}))
	wordBytes  = 8
)

// gather is the algorithm of records that radix and mergeSort do not move.
type gather struct{ s *sorter }

func (g *gather) sort(data, scratch []byte) int {
	type piece struct{ begin, last int }
	var chunks []piece
	for at := 0; at < len(data) && !g.s.stop.Load(); {
		size, last := g.sortChunk(data[at:], scratch)
		chunks = append(chunks, piece{at, last})
		at += size
		g.s.tick(size)
	}
	if g.s.stop.Load() {
		return 0
	}
	last := chunks[len(chunks)-1].last
	for i := len(chunks) - 2; i >= 0; i-- {
		begin := chunks[i].begin
		last = g.s.merge(data[begin:], chunks[i+1].begin-begin, [2]int{chunks[i].last, last}, scratch, 1)
	}
	return last
}

// sortChunk sorts as many of data's frames as scratch allows. It returns their size
// and that of the last one.
func (g *gather) sortChunk(data, scratch []byte) (size, last int) {
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(scratch)))) & (entryBytes - 1)
	room := elements[entry](scratch[skip:])
	first := len(room)
	for size < len(data) {
		n := g.s.layout.frame(data[size:])
		free := first - 1 // of which sorting needs as much as there are entries
		if size+n > free*entryBytes || uint64(size+n) > math.MaxUint32 || free < len(room)-free {
			break
		}
		first--
		room[first] = entry{g.word(data[size:]), uint32(size), uint32(n)}
		size += n
	}
	if size == 0 { // the frame is too large
		n := g.s.layout.frame(data)
		return n, n
	}
	entries := room[first:]
	slices.Reverse(entries)
	g.sortEntries(data[:size], entries, room[:first])
	last = int(entries[len(entries)-1].size)
	if g.s.stop.Load() || slices.IsSortedFunc(entries, func(a, b entry) int { return int(a.at) - int(b.at) }) {
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
	if g.s.cmp != nil {
		m := mergeSort[entry]{g.s, data}
		m.sortElements(entries, room, false)
		return
	}
	word := load{little: littleEndian}
	c := chunk{g.s, data, radix[entry]{g.s, []load{word}}}
	if !inOrder(g.s, entries, c.less) {
		c.sort(entries, room, 0)
	}
}

// word returns the first word of the key of the frame at the beginning of data.
func (g *gather) word(data []byte) uint64 {
	switch {
	case g.s.cmp != nil:
		return 0
	case g.s.number != nil:
		return g.s.number(g.s.layout.record(data))
	}
	return prefix(g.s.key(g.s.layout.record(data)))
}

// prefix returns the first 8 bytes of a key.
func prefix(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	w := uint64(0)
	for i, c := range key {
		w |= uint64(c) << (56 - 8*i)
	}
	return w
}

// chunk sorts the entries of its frames by their keys.
type chunk struct {
	s      *sorter
	data   []byte
	byWord radix[entry]
}

// rest returns the key of e from depth on.
func (c *chunk) rest(e *entry, depth int) []byte {
	key := c.s.key(c.s.layout.record(c.data[e.at:]))
	return key[min(depth, len(key)):]
}

// less compares entries that have the first words of their keys.
func (c *chunk) less(a, b *entry) bool {
	if a.word != b.word || c.s.number != nil {
		return a.word < b.word
	}
	return bytes.Compare(c.rest(a, 0), c.rest(b, 0)) < 0
}

// sort sorts entries whose words are those at depth, and whose keys are the same
// before.
func (c *chunk) sort(entries, room []entry, depth int) {
	for !c.s.stop.Load() {
		c.byWord.spread(entries, room[:len(entries)], false, 0, false)
		if c.s.number != nil || len(entries) < 2 {
			return
		}
		if entries[0].word == entries[len(entries)-1].word {
			entries = c.longer(entries, room, depth)
			depth += wordBytes
			continue
		}
		for i := 0; i < len(entries); {
			begin := i
			for i++; i < len(entries) && entries[i].word == entries[begin].word; i++ {
			}
			if same := entries[begin:i]; len(same) > 1 {
				c.sort(c.longer(same, room, depth), room, depth+wordBytes)
			}
		}
		return
	}
}

// longer takes entries whose words at depth are the same. It puts those first whose
// keys end there, by length, and returns the others with their next words.
func (c *chunk) longer(entries, room []entry, depth int) []entry {
	for i := range entries {
		e := &entries[i]
		e.word = uint64(min(len(c.rest(e, depth)), wordBytes+1))
	}
	c.byWord.spread(entries, room[:len(entries)], false, 0, false)
	i := len(entries)
	for i > 0 && entries[i-1].word > wordBytes {
		i--
		e := &entries[i]
		e.word = prefix(c.rest(e, depth+wordBytes))
	}
	return entries[i:]
}

// head is the first frame of a run.
type head struct {
	frame []byte
	key   []byte // or the record, if that is compared
	word  uint64
}

// set makes h the frame at the beginning of data.
func (g *gather) set(h *head, data []byte) {
	h.frame = data[:g.s.layout.frame(data)]
	record := g.s.layout.record(h.frame)
	switch {
	case g.s.cmp != nil:
		h.key = record
	case g.s.number != nil:
		h.word = g.s.number(record)
	default:
		h.key = g.s.key(record)
		h.word = prefix(h.key)
	}
}

func (g *gather) less(a, b *head) bool {
	switch {
	case g.s.cmp != nil:
		return g.s.cmp(a.key, b.key) < 0
	case a.word != b.word:
		return a.word < b.word
	}
	return g.s.number == nil && bytes.Compare(a.key, b.key) < 0
}

func (g *gather) merge(out, left []byte) (leftLast bool) {
	w, i, j := 0, 0, len(left)
	defer func() { leftLast = copy(out[w:], left[i:]) > 0 }()
	if i == len(left) || j == len(out) {
		return
	}
	var a, b head
	g.set(&a, left)
	g.set(&b, out[j:])
	for !g.s.stop.Load() {
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
