package load

import (
	"math/rand/v2"
	"reflect"
	"sync/atomic"

	"github.com/freehold-go/freehold"
)

// A share is one goroutine's part of a sawtooth: its own chunks, random numbers
// and bounds, so that a run is the same for the same seed.
//
// Only its goroutine touches it, but for live, which anyone may read.
type share struct {
	high, low int64
	sizes     Sizes
	rng       *rand.Rand
	chunks    []chunk
	count     int64 // chunks ever allocated

	_    [64]byte
	live atomic.Int64 // bytes
	_    [64]byte
}

var chunkBytes = int64(reflect.TypeFor[chunk]().Size())

// grow allocates until the next chunk would pass high.
func (s *share) grow(a freehold.Allocator) error {
	for {
		size := s.sizes.next(s.rng)
		if s.live.Load()+int64(size) > s.high {
			return nil
		}
		block, err := a.Alloc(size, 16)
		if err != nil {
			return err
		}
		s.count++
		c := chunk{b: block, stamp: s.rng.Uint64()}
		c.fill()
		s.chunks = append(s.chunks, c)
		s.live.Add(int64(size))
	}
}

// shrink frees chunks at random until no more than low bytes are live.
func (s *share) shrink(a freehold.Allocator, low int64) error {
	for s.live.Load() > low {
		i, last := s.rng.IntN(len(s.chunks)), len(s.chunks)-1
		c := s.chunks[i]
		if err := c.check(); err != nil {
			return err
		}
		s.chunks[i] = s.chunks[last]
		s.chunks[last] = chunk{}
		s.chunks = s.chunks[:last]
		s.live.Add(-int64(len(c.b)))
		a.Free(c.b)
	}
	return nil
}
