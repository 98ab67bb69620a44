// Reserve: chunks for a Shared before they are needed.

package arena

import "github.com/freehold-go/freehold/internal/arg"

// Reserve makes sure that spare chunks of size bytes together, rounded up to
// whole chunks as far as MaxBytes lets, are ready, with their pages touched, so
// that Alloc need not wait for the parent or the system. They serve blocks of up
// to a quarter of ChunkBytes; Trim gives those that are not in use back. The error is
// that of Alloc, and no memory is kept then. A negative size is a panic.
//
// It costs what the parent takes for the chunks, under the arena's lock, and the
// system's page faults, without it. If there are too few spare ones it looks at
// all processors first, for which it stops the world as Stats does.
func (s *Shared) Reserve(size int) error {
	arg.AtLeast("arena.Shared.Reserve", "size", size, 0)
	chunks, err := s.takeSpare(size)
	if err != nil {
		return err
	}
	const pageBytes = 4 << 10 // the smallest there is
	for _, c := range chunks {
		for i := 0; i < len(c.mem); i += pageBytes {
			c.mem[i] = 0
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = append(s.spare, chunks...)
	return nil
}

// takeSpare takes chunks from the parent that bring the spare ones to size bytes.
// They are in no list yet.
func (s *Shared) takeSpare(size int) (chunks []*sharedChunk, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustBeOpen("arena.Shared.Reserve")
	if size > bytesIn(s.spare) {
		s.drain()
		s.recycle()
	}
	missing := size - bytesIn(s.spare)
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
