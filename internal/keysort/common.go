// Common: sort by common prefix, for keys that share long prefixes with one key.
//
// In such a text each line may be a prefix of the next one. A pass over eight bits would separate
// few entries, and the next byte would need another pass. So each key is compared with one pivot
// key, and the entries are sorted by the length of the common prefix:
//
//	abcde     the pivot
//	ab        less than the pivot: a longer common prefix is greater
//	abb       less, with an equal common prefix: sorted from there on
//	abcde     equal
//	abcx      greater than the pivot: a longer common prefix is less
//	abx

package keysort

const (
	sameAsPivot = 1 << 32 // the word of a key that equals the pivot
	manyEntries = 128     // mostAreLike ignores fewer
)

// mostAreLike looks for one word that more than seven in eight entries have. It returns the
// entry with the longest key among them, or nil. It is also nil if that key ends in the word.
func mostAreLike(e []Entry, depth int) *Entry {
	if len(e) < manyEntries || depth == wordOnly {
		return nil
	}
	word := e[len(e)/2].Word
	if e[len(e)/4].Word != word || e[len(e)/4*3].Word != word {
		return nil
	}
	longest, n := &e[len(e)/2], 0
	for i := range e {
		if e[i].Word == word {
			n++
			if e[i].N > longest.N {
				longest = &e[i]
			}
		}
	}
	if n <= len(e)/8*7 || int(longest.N) <= depth+8 {
		return nil
	}
	return longest
}

// byCommon sorts entries by their common prefix with a pivot, and then the entries with equal
// prefixes among themselves. All keys are equal before depth; pivot begins at depth.
func (s *Sorter) byCommon(e []Entry, pivot []byte, depth int) {
	for i := range e {
		s.touchAt(e, i)
		e[i].Word = agreement(s.rest(&e[i], depth), pivot)
	}
	s.sort(e, wordOnly)
	for len(e) > 0 && !s.Stop.Load() {
		word, n := e[0].Word, 1
		for n < len(e) && e[n].Word == word {
			n++
		}
		if word == sameAsPivot {
			s.shareOne(e[:n])
		} else if n > 1 {
			agreed := depth + int(min(word, 2*sameAsPivot-word))
			s.load(e[:n], agreed)
			s.sort(e[:n], agreed)
		}
		e = e[n:]
	}
}

// agreement returns the length of the common prefix of key and pivot as a sort word: keys with
// different words are in the order of their words.
func agreement(key, pivot []byte) uint64 {
	n := Common(key, pivot)
	switch {
	case n == len(key) && n == len(pivot):
		return sameAsPivot
	case n == len(key) || n < len(pivot) && key[n] < pivot[n]:
		return uint64(n)
	}
	return 2*sameAsPivot - uint64(n)
}
