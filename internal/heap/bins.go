// Bins: free runs by length.
//
// There is one bin per length up to 64 pages, then eight bins per doubling. A
// request takes the best fit of the first few runs of its own bin, else any run
// of the next bin that has one. So the search is short, and long runs are not
// broken for short requests. (Masmano et al., "TLSF: a new dynamic memory
// allocator for real-time systems", ECRTS 2004.)

package heap

import "math/bits"

const (
	exactBins = 64
	numBins   = exactBins + 8*(bits.UintSize-pageShift-6)
	binSearch = 16 // runs of a bin that are compared
)

// bins holds the free runs of a page heap.
//
// Invariants:
//   - filled has the bit of each bin that holds a run, no others
//   - in each bin, runs that purge may try come before the others
type bins struct {
	lists  [numBins]list
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

// insert adds s: in front if there is memory in it to purge, since that is also
// the memory to use first.
func (b *bins) insert(s *span) {
	i := bin(s.pages)
	if s.dirty > 0 && !s.purgeTried {
		b.lists[i].push(s)
	} else {
		b.lists[i].pushBack(s)
	}
	b.filled[i/64] |= 1 << (i % 64)
}

func (b *bins) remove(s *span) {
	i := bin(s.pages)
	b.lists[i].remove(s)
	if b.lists[i].head == 0 {
		b.filled[i/64] &^= 1 << (i % 64)
	}
}

// fit returns a run of at least n pages, nil if there is none.
func (b *bins) fit(n uintptr) *span {
	i := bin(n)
	var best *span
	for j, at := 0, b.lists[i].head; at != 0 && j < binSearch; j++ {
		s := spanPtr(at)
		if s.pages >= n && (best == nil || s.pages < best.pages) {
			if best = s; s.pages == n {
				break
			}
		}
		at = s.next
	}
	if best != nil {
		return best
	}
	for w := (i + 1) / 64; w < len(b.filled); w++ {
		filled := b.filled[w]
		if w == (i+1)/64 {
			filled &= ^uint64(0) << ((i + 1) % 64)
		}
		if filled != 0 {
			return spanPtr(b.lists[w*64+bits.TrailingZeros64(filled)].head)
		}
	}
	return nil
}

// below returns the last bin before i that holds a run, -1 if there is none.
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

// retryPurge has runs that were purged in part tried again.
func (b *bins) retryPurge() {
	for i := range b.lists {
		l := &b.lists[i]
		for at := l.head; at != 0; {
			s := spanPtr(at)
			at = s.next
			if s.purgeTried && s.dirty > 0 {
				s.purgeTried = false
				l.remove(s)
				l.push(s)
			}
		}
	}
}
