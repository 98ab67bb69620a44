// Counts: reference counts of strings.

package intern

import (
	"math"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/container"
)

const maxCount = math.MaxUint32 // a count that reaches it sticks: the string stays until Close

// retain adds a reference to a live id, if references are counted.
func (s *store) retain(id uint32) {
	if s.counted {
		s.addCount(id)
	}
}

func (s *store) addCount(id uint32) {
	if n := s.counts.word(id); *n < maxCount {
		*n++
	}
}

// release drops a reference to a live id and reports whether it was the last.
func (s *store) release(id uint32) bool {
	n := s.counts.word(id)
	if *n < maxCount {
		*n--
	}
	return *n == 0
}

// mustCount panics if references are not counted.
func (s *store) mustCount(k *container.Kind, call string) {
	if !s.counted {
		arg.Panicf(k.Type+"."+call, "references are not counted: Options.RefCounts is false")
	}
}
