// Spares: a sorted set of a Shared's chunks, by their free bytes.
//
// The chunks are sorted by key, free bytes before alignment, in runs of bounded length:
//
//	runs  | 66K 66K 68K | 70K 90K | 128K 1M 1M |
//
// A lookup is two binary searches; add and remove move part of one run.

package arena

import (
	"math/bits"
	"slices"
	"sort"
)

// maxRun is the most chunks in a run. A full run is 4 KiB; moving it costs less than the searches.
const maxRun = 256

// A spareSet is a set of chunks with free bytes. No block is cut off a chunk in the set.
//
// Invariants:
//   - no run is longer than maxRun, and none is empty beside others
//   - keys ascend within a run and from run to run
type spareSet struct {
	runs  [][]spareChunk
	bytes int // in all chunks, used bytes too
}

type spareChunk struct {
	key   uint64
	chunk *sharedChunk
}

// spareKey orders by free bytes, then by the alignment of their address, so that
// blocks with a small alignment leave the aligned chunks to blocks that need them.
func spareKey(free int, align uintptr) uint64 {
	return uint64(free)<<6 | uint64(bits.TrailingZeros64(uint64(align)))
}

// add inserts a chunk.
func (s *spareSet) add(c *sharedChunk) {
	key := spareKey(len(c.mem)-int(c.at), c.base+uintptr(c.at))
	if len(s.runs) == 0 {
		s.runs = [][]spareChunk{nil}
	}
	r, i := s.search(key)
	if r == len(s.runs) { // above all others
		r--
		i = len(s.runs[r])
	}
	s.bytes += len(c.mem)
	run := slices.Insert(s.runs[r], i, spareChunk{key, c})
	if len(run) > maxRun {
		upper := slices.Clone(run[maxRun/2:])
		clear(run[maxRun/2:])
		run = run[:maxRun/2]
		s.runs = slices.Insert(s.runs, r+1, upper)
	}
	s.runs[r] = run
}

// take removes and returns a chunk of at most maxBytes that fits the block, or nil. It tries the
// smallest chunk with size free bytes. If that does not fit because of its alignment, it tries the
// smallest chunk that fits the block at any alignment.
func (s *spareSet) take(size, align int, maxBytes uint) *sharedChunk {
	for _, key := range [...]uint64{spareKey(size, uintptr(align)), spareKey(size+align-1, 1)} {
		r, i := s.search(key)
		if r == len(s.runs) {
			return nil
		}
		c := s.runs[r][i].chunk
		if uint(len(c.mem)) > maxBytes {
			return nil
		}
		if c.fits(size, align) {
			s.remove(r, i)
			return c
		}
	}
	return nil
}

// search returns the run and index of the first chunk whose key is at least key;
// the run is len(s.runs) if there is none.
func (s *spareSet) search(key uint64) (run, index int) {
	if s.bytes == 0 {
		return len(s.runs), 0
	}
	run = sort.Search(len(s.runs), func(r int) bool { return s.runs[r][len(s.runs[r])-1].key >= key })
	if run < len(s.runs) {
		index = sort.Search(len(s.runs[run]), func(i int) bool { return s.runs[run][i].key >= key })
	}
	return run, index
}

func (s *spareSet) remove(run, index int) {
	s.bytes -= len(s.runs[run][index].chunk.mem)
	s.runs[run] = slices.Delete(s.runs[run], index, index+1)
	if len(s.runs[run]) == 0 && len(s.runs) > 1 { // the last one keeps its array
		s.runs = slices.Delete(s.runs, run, run+1)
	}
}

// takeLargest removes and returns the chunk with the most free bytes. There is one.
func (s *spareSet) takeLargest() *sharedChunk {
	r := len(s.runs) - 1
	i := len(s.runs[r]) - 1
	c := s.runs[r][i].chunk
	s.remove(r, i)
	return c
}

// moveTo removes all chunks and appends them to list.
func (s *spareSet) moveTo(list []*sharedChunk) []*sharedChunk {
	for _, run := range s.runs {
		for _, c := range run {
			list = append(list, c.chunk)
		}
	}
	if s.bytes > 0 {
		clear(s.runs[0])
		clear(s.runs[1:])
		s.runs[0], s.runs, s.bytes = s.runs[0][:0], s.runs[:1], 0
	}
	return list
}
