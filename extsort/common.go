// Common: entries whose records begin with much of one record.
//
// Such are lines of which each begins the next one. Eight bits of the word set few
// apart from the rest, for which all is done again a byte later. So each is
// compared with one record as far as they agree, and the entries are sorted by that:
//
//	abcde     the record
//	ab        less: those that agree longer are greater
//	abb       less, as long: sorted from here on
//	abcde     equal
//	abcx      greater: those that agree longer are less
//	abx

package extsort

import "github.com/freehold-go/freehold/internal/keysort"

const (
	sameAsPivot = 1 << 32 // a word: between those of records that are less and greater
	manyEntries = 128     // from here on mostAreLike looks
)

// mostAreLike returns the longest record of those with one word, if more than seven in
// eight have it and the record is longer. Otherwise it is nil.
func mostAreLike(e []entry, depth int) *entry {
	if len(e) < manyEntries || depth == wordOnly {
		return nil
	}
	word := e[len(e)/2].word
	if e[len(e)/4].word != word || e[len(e)/4*3].word != word {
		return nil
	}
	longest, n := &e[len(e)/2], 0
	for i := range e {
		if e[i].word == word {
			n++
			if e[i].n > longest.n {
				longest = &e[i]
			}
		}
	}
	if n <= len(e)/8*7 || int(longest.n) <= depth+8 {
		return nil
	}
	return longest
}

// byCommon sorts entries by what their records have in common with pivot, and then
// those that have equally much. All are equal before depth.
func (r *radix) byCommon(e []entry, pivot []byte, depth int) {
	for i := range e {
		if i%ahead == 0 {
			r.touched += touch(r.text, e[i:min(i+ahead, len(e))])
		}
		e[i].word = agreement(r.key(&e[i]), pivot, depth)
	}
	r.sort(e, wordOnly)
	for len(e) > 0 && !r.stop.Load() {
		word, n := e[0].word, 1
		for n < len(e) && e[n].word == word {
			n++
		}
		if word == sameAsPivot {
			r.shareOne(e[:n])
		} else if n > 1 {
			agreed := int(min(word, 2*sameAsPivot-word))
			r.load(e[:n], agreed)
			r.sort(e[:n], agreed)
		}
		e = e[n:]
	}
}

// agreement returns how many bytes key and pivot begin with in common, as a word
// whose order is that of keys which differ in it.
func agreement(key, pivot []byte, depth int) uint64 {
	n := depth + keysort.Common(key[depth:], pivot[depth:])
	switch {
	case n == len(key) && n == len(pivot):
		return sameAsPivot
	case n == len(key) || n < len(pivot) && key[n] < pivot[n]:
		return uint64(n)
	}
	return 2*sameAsPivot - uint64(n)
}
