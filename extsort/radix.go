// Radix sort: entries by the bytes that they refer to.
//
// An entry holds the next eight bytes of its record as a big-endian word. Most
// comparisons are decided by the word, without a look at the text.
//
//	sort   American flag sort (McIlroy, Bostic and McIlroy, 1993) on eight bits of
//	       the word at a time, beginning with the highest bit that differs
//	equal  entries with equal words: those that end within it by length, the
//	       others by their next differing eight bytes
//	common entries of which most have one word: by how many bytes they have in common
//	       with one of these. Eight bits would set few of them apart
//	insert few entries, by comparison

package extsort

import (
	"bytes"
	"cmp"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/keysort"
)

// An entry refers to a record of a region: n bytes to compare at offset at.
type entry struct {
	word uint64
	at   uint32
	n    uint32
}

const (
	entryBytes = 16
	fewEntries = 24 // from here on insertion sort is faster
	wordOnly   = -1 // a depth: the word is all there is to compare
)

// A radix sorts entries of one text in ascending order.
type radix struct {
	text []byte
	ties int // equal keys by offset if positive, by descending offset if negative, in any order if 0
	stop *atomic.Bool

	touched uint
}

// sortAll sorts entries whose words are their records' first eight bytes. Sorted
// and reversed entries cost one pass.
func (r *radix) sortAll(e []entry) {
	i := 1
	for i < len(e) && r.compare(&e[i-1], &e[i], 0) <= 0 {
		i++
	}
	if i >= len(e) {
		return
	}
	if i == 1 {
		for i < len(e) && r.compare(&e[i-1], &e[i], 0) >= 0 {
			i++
		}
		if i == len(e) {
			slices.Reverse(e)
			return
		}
	}
	r.sort(e, 0)
}

// sort sorts entries whose words begin at offset depth of their records, which are
// equal before it.
func (r *radix) sort(e []entry, depth int) {
	for len(e) > fewEntries {
		var differ uint64
		first := e[0].word
		for i := range e {
			differ |= e[i].word ^ first
		}
		if differ != 0 {
			if like := mostAreLike(e, depth); like != nil {
				r.byCommon(e, r.key(like), depth)
			} else {
				r.flag(e, max(bits.Len64(differ)-8, 0), depth)
			}
			return
		}
		if depth == wordOnly || r.stop.Load() {
			return
		}
		e, depth = r.equal(e, depth)
	}
	r.insert(e, depth)
}

// flag deals the entries to buckets by eight bits of their words, above which all
// are equal, and sorts the buckets.
func (r *radix) flag(e []entry, shift, depth int) {
	var next, end [256]uint32
	for i := range e {
		end[byte(e[i].word>>shift)]++
	}
	sum := uint32(0)
	for d := range end {
		next[d] = sum
		sum += end[d]
		end[d] = sum
	}
	for d := range end {
		for next[d] < end[d] {
			v := e[next[d]]
			for {
				to := byte(v.word >> shift)
				at := next[to]
				next[to] = at + 1
				if int(to) == d {
					e[at] = v
					break
				}
				v, e[at] = e[at], v
			}
		}
	}
	from := uint32(0)
	for _, to := range end {
		if to-from > 1 {
			r.sort(e[from:to], depth)
		}
		from = to
	}
}

// equal sorts the entries that end within their word, which is equal for all. It
// returns the others, behind them, with words from the new depth on.
func (r *radix) equal(e []entry, depth int) (rest []entry, restDepth int) {
	depth += 8
	ended := 0
	for i := range e {
		if int(e[i].n) <= depth {
			e[i], e[ended] = e[ended], e[i]
			ended++
		}
	}
	r.byLength(e[:ended])
	rest = e[ended:]
	if len(rest) == 0 {
		return nil, depth
	}
	depth += r.common(rest, depth)
	if allEndAt(rest, depth) {
		r.shareOne(rest)
		return nil, depth
	}
	r.load(rest, depth)
	return rest, depth
}

// load loads words from depth on.
func (r *radix) load(e []entry, depth int) {
	for i := range e {
		e[i].word = keysort.Word(r.key(&e[i]), depth)
	}
}

func allEndAt(e []entry, n int) bool {
	for i := range e {
		if int(e[i].n) != n {
			return false
		}
	}
	return true
}

// shareOne sorts entries with equal keys. If the records are equal too, all entries refer
// to one of them, which is then read from memory once.
func (r *radix) shareOne(e []entry) {
	if r.ties != 0 {
		r.byLength(e)
		return
	}
	for i := range e {
		e[i].at = e[0].at
	}
}

// byLength sorts entries that differ in nothing but trailing zeros.
func (r *radix) byLength(e []entry) {
	if len(e) < 2 {
		return
	}
	for i := range e {
		at := uint64(0)
		switch {
		case r.ties > 0:
			at = uint64(e[i].at)
		case r.ties < 0:
			at = uint64(^e[i].at)
		}
		e[i].word = uint64(e[i].n)<<32 | at
	}
	r.sort(e, wordOnly)
}

// common returns how many bytes from depth on all entries share.
func (r *radix) common(e []entry, depth int) int {
	first := r.key(&e[0])[depth:]
	for i := 0; i < len(e) && len(first) > 0; i++ {
		if i%ahead == 0 {
			r.touched += touch(r.text, e[i:min(i+ahead, len(e))])
		}
		first = first[:keysort.Common(first, r.key(&e[i])[depth:])]
	}
	return len(first)
}

// insert sorts few entries.
func (r *radix) insert(e []entry, depth int) {
	for i := 1; i < len(e); i++ {
		v := e[i]
		j := i
		for j > 0 && (v.word < e[j-1].word || v.word == e[j-1].word && r.compare(&v, &e[j-1], depth) < 0) {
			e[j] = e[j-1]
			j--
		}
		e[j] = v
	}
}

func (r *radix) compare(a, b *entry, depth int) int {
	if a.word != b.word {
		if a.word < b.word {
			return -1
		}
		return 1
	}
	if depth == wordOnly {
		return 0
	}
	// Equal words of which one is padded: the shorter record is first.
	c := 0
	if depth += 8; min(int(a.n), int(b.n)) <= depth {
		c = cmp.Compare(a.n, b.n)
	} else {
		c = bytes.Compare(r.key(a)[depth:], r.key(b)[depth:])
	}
	if c == 0 && r.ties != 0 {
		c = cmp.Compare(a.at, b.at) * r.ties
	}
	return c
}

func (r *radix) key(e *entry) []byte { return r.text[e.at:][:e.n] }
