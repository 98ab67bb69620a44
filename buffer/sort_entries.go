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
// An entry has 8 bytes of the key. Only when these are equal are the next ones
// read from the frame. Keys that end are padded with zeros, so "a" and "a\0" have the
// same words; among equal words keys that end there come first, by length.

package buffer

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
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
	fewEntries = 16
	noMore     = -1 // depth of words that are all of the key, and differ
)

// gather is the algorithm of records that radix and mergeSort do not move.
type gather struct{ s *sorter }

func (g *gather) sort(data, scratch []byte) int {
	type chunk struct{ begin, last int }
	var chunks []chunk
	for at := 0; at < len(data) && !g.s.stop.Load(); {
		size, last := g.sortChunk(data[at:], scratch)
		chunks = append(chunks, chunk{at, last})
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
		free := first - 1
		if size+n > free*entryBytes || uint64(size+n) > math.MaxUint32 {
			break
		}
		// Merging entries needs room for half of them.
		if g.s.cmp != nil && free < (len(room)-free)/2 {
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
	n := 0
	for _, e := range entries {
		n += copy(scratch[n:], data[e.at:e.at+e.size])
	}
	copy(data, scratch[:n])
	return size, last
}

func (g *gather) sortEntries(data []byte, entries, room []entry) {
	if g.s.cmp != nil {
		m := mergeSort[entry]{g.s, data}
		m.sortElements(entries, room, false)
		return
	}
	c := chunkKeys{g, data}
	if !inOrder(g.s, entries, func(a, b *entry) bool { return c.compare(a, b, 0) < 0 }) {
		c.radix(entries, 0)
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

// chunkKeys are the keys of a chunk's frames.
type chunkKeys struct {
	*gather
	data []byte
}

// rest returns the key of e from depth on.
func (c *chunkKeys) rest(e *entry, depth int) []byte {
	key := c.s.key(c.s.layout.record(c.data[e.at:]))
	return key[min(depth, len(key)):]
}

// compare compares the keys of entries whose words are those at depth. All keys have
// the same bytes before.
func (c *chunkKeys) compare(a, b *entry, depth int) int {
	switch {
	case a.word < b.word:
		return -1
	case a.word > b.word:
		return 1
	case c.s.number != nil || depth == noMore:
		return 0
	}
	return bytes.Compare(c.rest(a, depth), c.rest(b, depth))
}

// radix sorts entries in place, by 8 bits at a time (McIlroy, Bostic and McIlroy,
// Engineering radix sort, 1993: American flag sort). Equal keys are sorted by where
// they were.
func (c *chunkKeys) radix(entries []entry, depth int) {
	for len(entries) > fewEntries {
		if c.s.stop.Load() {
			return
		}
		differ := uint64(0)
		for i := range entries {
			differ |= entries[i].word ^ entries[0].word
		}
		if differ == 0 {
			entries, depth = c.deeper(entries, depth)
			continue
		}
		entries = c.flag(entries, depth, max(bits.Len64(differ)-8, 0))
	}
	c.insert(entries, depth)
}

// flag moves entries to buckets by 8 bits of their words, and sorts all but the
// largest bucket, which it returns. So radix is nested no deeper than the logarithm of
// the number of entries.
func (c *chunkKeys) flag(entries []entry, depth, shift int) []entry {
	var next, end [256]int
	for i := range entries {
		end[byte(entries[i].word>>(shift&63))]++
	}
	sum, largest := 0, 0
	for digit, n := range end {
		if n > end[largest]-next[largest] {
			largest = digit
		}
		next[digit] = sum
		sum += n
		end[digit] = sum
	}
	begin := next
	for digit := range next {
		for next[digit] < end[digit] {
			e := entries[next[digit]]
			for {
				d := byte(e.word >> (shift & 63))
				if int(d) == digit {
					break
				}
				other := &entries[next[d]]
				e, *other = *other, e
				next[d]++
			}
			entries[next[digit]] = e
			next[digit]++
		}
	}
	for digit := range end {
		if digit != largest {
			c.radix(entries[begin[digit]:end[digit]], depth)
		}
	}
	return entries[begin[largest]:end[largest]]
}

// deeper takes entries with equal words. It sorts those whose keys end there and
// returns the others, with their next words.
func (c *chunkKeys) deeper(entries []entry, depth int) ([]entry, int) {
	if c.s.number != nil {
		for i := range entries {
			entries[i].word = uint64(entries[i].at)
		}
		return entries, noMore
	}
	ended := 0
	for i := range entries {
		e := &entries[i]
		rest := c.rest(e, depth)
		if len(rest) > 8 {
			e.word = prefix(rest[8:])
			continue
		}
		e.word = uint64(len(rest))<<32 | uint64(e.at)
		entries[ended], *e = *e, entries[ended]
		ended++
	}
	c.radix(entries[:ended], noMore)
	return entries[ended:], depth + 8
}

func (c *chunkKeys) insert(entries []entry, depth int) {
	for i := 1; i < len(entries); i++ {
		e := entries[i]
		j := i
		for ; j > 0; j-- {
			before := &entries[j-1]
			order := c.compare(&e, before, depth)
			if order > 0 || order == 0 && e.at > before.at {
				break
			}
			entries[j] = *before
		}
		entries[j] = e
	}
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
