// Common: entries whose keys begin with much of one key.
//
// Such are lines of which each begins the next one. Eight bits of the word set few
// apart from the rest, for which all is done again a byte later. So each is
// compared with one key as far as they agree, and the entries are sorted by that:
//
//	abcde     the key
//	ab        less: those that agree longer are greater
//	abb       less, as long: sorted from here on
//	abcde     equal
//	abcx      greater: those that agree longer are less
//	abx

package keysort

const (
	sameAsPivot = 1 << 32 // a word: between those of keys that are less and greater
	manyEntries = 128     // from here on mostAreLike looks
)

// mostAreLike returns the longest key of those with one word, if more than seven in
// eight have it and the key is longer. Otherwise it is nil.
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

// byCommon sorts entries by what their keys have in common with a pivot's, and then
// those that have equally much. All are equal before depth; pivot is from there on.
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

// agreement returns how many bytes key and pivot begin with in common, as a word
// whose order is that of keys which differ in it.
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
