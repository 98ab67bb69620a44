// Reserve: preallocation of chunks for a Shared.

package arena

import (
	"math"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/asan"
)

// Reserve preallocates size bytes of spare chunks and touches their pages, so that Alloc need not
// wait for the parent or the system. It rounds up to whole chunks as far as MaxBytes permits. The
// chunks serve blocks of up to a quarter of ChunkBytes; Trim returns the unused ones. Errors are as
// for Alloc; after one, no memory is kept. It panics if size is negative.
//
// It costs the parent's calls, under the arena's lock, and the page faults, outside of it. If there
// are too few spare chunks it first drains the processors' chunks, which stops the world as Stats
// does.
func (s *Shared) Reserve(size int) error {
	arg.AtLeast("arena.Shared.Reserve", "size", size, 0)
	chunks, err := s.takeSpare(size)
	if err != nil {
		return err
	}
	const pageBytes = 4 << 10 // the smallest of any system
	for _, c := range chunks {
		asan.Unpoison(c.mem)
		for i := 0; i < len(c.mem); i += pageBytes {
			c.mem[i] = 0
		}
		c.mem[len(c.mem)-1] = 0 // its last page, where the chunk does not begin a page
		asan.Poison(c.mem)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range chunks {
		s.spare.add(c)
	}
	return nil
}

// takeSpare takes chunks from the parent until the spare ones have size bytes.
// The chunks returned are in no list yet.
func (s *Shared) takeSpare(size int) (chunks []*sharedChunk, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustBeOpen("arena.Shared.Reserve")
	if size > s.spare.bytes {
		s.drain()
		s.recycle(math.MaxInt)
	}
	missing := size - s.spare.bytes
	if s.maxBytes > 0 && missing > s.maxBytes-s.reserved {
		return nil, s.refusal(missing)
	}
	for missing > 0 {
		c, err := s.grow(1, 1, false, true)
		if err != nil {
			s.shrink(chunks)
			return nil, err
		}
		missing -= len(c.mem)
		chunks = append(chunks, c)
	}
	return chunks, nil
}
