// Search: compares the tags of both homes at once, with SSE2 on amd64.
//
//	matches   | 0 | slots of the second home 7 | 0 | slots of the first home 7 |
//
// Between Shrink and Cut, the caller's writer waits for searches. Assembly is not preempted, so a
// search in assembly has ended when the writer has stopped all processors. A search in Go enters
// the readers.

package cuckoo

import (
	"math/bits"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/seam"
)

const (
	homeBits = 8                       // of matches for each home
	slotBits = (1<<Slots - 1) * 0x0101 // of matches for both homes
)

// SearchedFirst is a step of a search in Go, between its two homes.
const SearchedFirst seam.Point = 1 << 10

// A Search has the slots whose tags are equal to the one that was looked for. Slots that are empty
// match the tag 0. The zero Search has none.
type Search struct{ one, two, matches uint32 }

// Search looks at both homes of a tag.
func (ix *Index) Search(tag uint32) Search {
	one, two, matches := search(ix, tag)
	return Search{one, two, matches}
}

// Next returns a slot of the search that was not returned before. It returns nil if there is none,
// or if Shrink has removed a home since.
//
// Precondition: the caller is among the readers, or is the writer.
func (ix *Index) Next(s *Search) *atomic.Uint64 {
	if s.matches == 0 || max(s.one, s.two) >= ix.buckets.Load() {
		return nil
	}
	n := bits.TrailingZeros32(s.matches)
	s.matches &= s.matches - 1
	i := s.one
	if n >= homeBits {
		i = s.two
	}
	return &ix.Bucket(i).Slots[n%homeBits]
}

// Found reports whether there are slots left.
func (s *Search) Found() bool { return s.matches != 0 }

func searchInGo(ix *Index, tag uint32) (one, two, matches uint32) {
	me := ix.readers.Enter()
	if n := ix.buckets.Load(); n > 0 {
		one, two = homes(tag, n)
		ix.Bucket(two).Prefetch()
		matches = ix.Bucket(one).match(tag)
		ix.seam.At(SearchedFirst)
		matches |= ix.Bucket(two).match(tag) << homeBits
	}
	ix.readers.Leave(me)
	return one, two, matches
}

// match returns a bit for each slot with a tag.
func (b *Bucket) match(tag uint32) (bits uint32) {
	for j := range b.Slots {
		if tagOf(b.Slots[j].Load()) == tag {
			bits |= 1 << j
		}
	}
	return bits
}
