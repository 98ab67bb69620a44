// Bins: segregated free lists of runs, by length.
//
// There is one bin per length up to 64 pages, then eight bins per doubling:
//
//	bin     0   1   ...  63   64     65     ...  71       72       ...
//	pages   1   2   ...  64   65-71  72-79  ...  120-127  128-143  ...
//
// A request takes the best fit of the first few runs of its own bin, else the first
// run of the next bin that has one: every run there is long enough. This good fit
// bounds the search and keeps long runs whole for long requests. It is not exact:
// in a bin of several lengths it may miss a run that fits behind the first few.
// (Masmano et al., "TLSF: a new dynamic memory allocator for real-time systems",
// ECRTS 2004.)

package pages

import "math/bits"

const (
	exactBins = 64
	numBins   = exactBins + 8*(bits.UintSize-PageShift-6)
	binSearch = 16 // runs of its own bin that a request compares
)

// bins holds the free runs of a page heap.
//
// Invariants:
//   - bit i of filled is set if and only if bin i holds a run
//   - in each bin, runs with memory that purge has not tried come before the others
type bins struct {
	lists  [numBins]List
	filled [(numBins + 63) / 64]uint64
}

// bin returns the bin of a run of n pages.
func bin(n uintptr) int {
	if n <= exactBins {
		return int(n) - 1
	}
	top := bits.Len(uint(n)) - 1
	return exactBins + (top-6)*8 + int(n>>(top-3)&7)
}

// insert adds s. Dirty runs that purge has not tried go to the front: fit prefers them, since
// their pages are resident, and dirtyRun stops at the first run of another kind.
func (b *bins) insert(s *Span) {
	i := bin(s.pages)
	if s.dirty > 0 && !s.purgeTried {
		b.lists[i].Push(s)
	} else {
		b.lists[i].PushBack(s)
	}
	b.filled[i/64] |= 1 << (i % 64)
}

func (b *bins) remove(s *Span) {
	i := bin(s.pages)
	b.lists[i].Remove(s)
	if b.lists[i].Head == 0 {
		b.filled[i/64] &^= 1 << (i % 64)
	}
}

// fit returns a run of at least n pages, or nil.
func (b *bins) fit(n uintptr) *Span {
	// Best fit among the first runs of the bin. Some of them may be too short.
	i := bin(n)
	var best *Span
	for j, at := 0, b.lists[i].Head; at != 0 && j < binSearch; j++ {
		s := SpanPtr(at)
		if s.pages >= n && (best == nil || s.pages < best.pages) {
			if best = s; s.pages == n {
				break
			}
		}
		at = s.Next
	}
	if best != nil {
		return best
	}
	// The next bin that holds a run, by the bitmap.
	for w := (i + 1) / 64; w < len(b.filled); w++ {
		filled := b.filled[w]
		if w == (i+1)/64 {
			filled &= ^uint64(0) << ((i + 1) % 64)
		}
		if filled != 0 {
			return SpanPtr(b.lists[w*64+bits.TrailingZeros64(filled)].Head)
		}
	}
	return nil
}

// below returns the last bin before i that holds a run, or -1.
func (b *bins) below(i int) int {
	for i > 0 {
		w := (i - 1) / 64
		if filled := b.filled[w] << (63 - (i-1)%64); filled != 0 {
			return i - 1 - bits.LeadingZeros64(filled)
		}
		i = w * 64
	}
	return -1
}

// retryPurge makes purge try again the runs that a purge left dirty.
func (b *bins) retryPurge() {
	for i := range b.lists {
		l := &b.lists[i]
		for at := l.Head; at != 0; {
			s := SpanPtr(at)
			at = s.Next
			if s.purgeTried && s.dirty > 0 {
				s.purgeTried = false
				l.Remove(s)
				l.Push(s)
			}
		}
	}
}
