// Sort: radix sort (American flag sort) of references to keys.
//
// An entry holds the next eight bytes of its key as a big-endian word. The words decide most
// comparisons without a look at the text.
//
//	sort    dispatches, and skips bits in which all words agree
//	flag    American flag sort (McIlroy, Bostic and McIlroy, 1993) on eight bits of the word at
//	        a time, from the highest bit that differs
//	equal   for equal words: orders the keys that end in the word by length, and loads the
//	        next eight differing bytes of the others
//	common  if most entries have one word: by the length of the common prefix with a pivot
//	insert  insertion sort of few entries

package keysort

import (
	"bytes"
	"cmp"
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"
)

// An Entry refers to a key of n bytes at an offset of a text.
type Entry struct {
	Word uint64 // the key's eight bytes at the depth of the next pass
	At   uint32 // offset of the key
	N    uint32 // length of the key
}

// EntryBytes is the size of an Entry.
const EntryBytes = 16

const _ = -(unsafe.Sizeof(Entry{}) ^ EntryBytes)

const (
	fewEntries = 24 // insertion sort is faster up to here
	wordOnly   = -1 // a depth: entries compare by Word alone
)

// A Sorter sorts entries of one text in ascending order.
type Sorter struct {
	Text []byte

	// Key, if not nil, returns the N bytes of an entry's key; Text is then unused. If its
	// result for an entry changes during the sort, only the order is undefined.
	Key func(e Entry) []byte

	// Ties orders entries with equal keys: by offset if positive, by descending offset if
	// negative. If it is 0, the order is undefined, and Sort may let all entries with equal
	// keys refer to one of them.
	Ties int

	Stop *atomic.Bool // ends a sort early; the order is then undefined

	touched uint
}

// Sort sorts entries whose words are at depth 0. Sorted and reversed entries cost one pass.
func (s *Sorter) Sort(e []Entry) {
	i := 1
	for i < len(e) && s.compare(&e[i-1], &e[i], 0) <= 0 {
		i++
	}
	if i >= len(e) {
		return
	}
	if i == 1 {
		for i < len(e) && s.compare(&e[i-1], &e[i], 0) >= 0 {
			i++
		}
		if i == len(e) {
			slices.Reverse(e)
			return
		}
	}
	s.sort(e, 0)
}

// sort sorts entries whose words begin at offset depth of their keys, which are
// equal before it.
func (s *Sorter) sort(e []Entry, depth int) {
	for len(e) > fewEntries {
		var differ uint64
		first := e[0].Word
		for i := range e {
			differ |= e[i].Word ^ first
		}
		if differ != 0 {
			if like := mostAreLike(e, depth); like != nil {
				s.byCommon(e, s.rest(like, depth), depth)
			} else {
				s.flag(e, max(bits.Len64(differ)-8, 0), depth)
			}
			return
		}
		if depth == wordOnly || s.Stop.Load() {
			return
		}
		e, depth = s.equal(e, depth)
	}
	s.insert(e, depth)
}

// flag deals the entries to 256 buckets by the eight bits of their words from shift on, and
// sorts the buckets. All words are equal above these bits.
func (s *Sorter) flag(e []Entry, shift, depth int) {
	var next, end [256]uint32
	for i := range e {
		end[byte(e[i].Word>>shift)]++
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
				to := byte(v.Word >> shift)
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
			s.sort(e[from:to], depth)
		}
		from = to
	}
}

// equal takes entries with equal words. It sorts the keys that end in the word to the front.
// It returns the others, with words loaded from the new depth on.
func (s *Sorter) equal(e []Entry, depth int) (rest []Entry, restDepth int) {
	depth += 8
	ended := 0
	for i := range e {
		if int(e[i].N) <= depth {
			e[i], e[ended] = e[ended], e[i]
			ended++
		}
	}
	s.byLength(e[:ended])
	rest = e[ended:]
	if len(rest) == 0 {
		return nil, depth
	}
	depth += s.common(rest, depth)
	if allEndAt(rest, depth) {
		s.shareOne(rest)
		return nil, depth
	}
	s.load(rest, depth)
	return rest, depth
}

// load sets the words to the keys' bytes from depth on.
func (s *Sorter) load(e []Entry, depth int) {
	for i := range e {
		e[i].Word = Word(s.rest(&e[i], depth), 0)
	}
}

func allEndAt(e []Entry, n int) bool {
	for i := range e {
		if int(e[i].N) != n {
			return false
		}
	}
	return true
}

// shareOne sorts entries with equal keys. Without Ties it lets all of them refer to one key,
// so later reads touch its memory alone.
func (s *Sorter) shareOne(e []Entry) {
	if s.Ties != 0 {
		s.byLength(e)
		return
	}
	for i := range e {
		e[i].At = e[0].At
	}
}

// byLength sorts entries whose keys differ at most in trailing zeros: by length, then by Ties.
func (s *Sorter) byLength(e []Entry) {
	if len(e) < 2 {
		return
	}
	for i := range e {
		at := uint64(0)
		switch {
		case s.Ties > 0:
			at = uint64(e[i].At)
		case s.Ties < 0:
			at = uint64(^e[i].At)
		}
		e[i].Word = uint64(e[i].N)<<32 | at
	}
	s.sort(e, wordOnly)
}

// common returns the length of the prefix from depth on that all keys share.
func (s *Sorter) common(e []Entry, depth int) int {
	first := s.rest(&e[0], depth)
	for i := 0; i < len(e) && len(first) > 0; i++ {
		s.touchAt(e, i)
		first = first[:Common(first, s.rest(&e[i], depth))]
	}
	return len(first)
}

// insert is insertion sort.
func (s *Sorter) insert(e []Entry, depth int) {
	for i := 1; i < len(e); i++ {
		v := e[i]
		j := i
		for j > 0 && (v.Word < e[j-1].Word || v.Word == e[j-1].Word && s.compare(&v, &e[j-1], depth) < 0) {
			e[j] = e[j-1]
			j--
		}
		e[j] = v
	}
}

func (s *Sorter) compare(a, b *Entry, depth int) int {
	if a.Word != b.Word {
		if a.Word < b.Word {
			return -1
		}
		return 1
	}
	if depth == wordOnly {
		return 0
	}
	// If one of two equal words is padded with zeros, the shorter key comes first.
	c := 0
	if depth += 8; min(int(a.N), int(b.N)) <= depth {
		c = cmp.Compare(a.N, b.N)
	} else {
		c = bytes.Compare(s.rest(a, depth), s.rest(b, depth))
	}
	if c == 0 && s.Ties != 0 {
		c = cmp.Compare(a.At, b.At) * s.Ties
	}
	return c
}

// rest returns the key of e from depth on.
func (s *Sorter) rest(e *Entry, depth int) []byte {
	if s.Key == nil {
		return s.Text[e.At:][:e.N][depth:]
	}
	key := s.Key(*e)
	return key[min(depth, len(key)):]
}

// Ahead is the number of keys that Touch reads ahead of their use, so that their cache misses
// overlap.
const Ahead = 32

// Touch reads the first and the last byte of each key, to bring them into the cache. The sum
// keeps the compiler from removing the reads.
func Touch(text []byte, entries []Entry) (sum uint) {
	for i := range entries {
		e := &entries[i]
		if e.N > 0 {
			sum += uint(text[e.At]) + uint(text[e.At+e.N-1])
		}
	}
	return sum
}

// touchAt touches the Ahead keys from e[i] on if i is a multiple of Ahead.
func (s *Sorter) touchAt(e []Entry, i int) {
	if i%Ahead == 0 && s.Key == nil {
		s.touched += Touch(s.Text, e[i:min(i+Ahead, len(e))])
	}
}
