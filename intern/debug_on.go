// Debug builds: the invariants are checked whenever the number of strings is a power of
// two, and free records are filled with 0xDB.

//go:build freehold_debug

package intern

import "github.com/freehold-go/freehold/internal/arg"

const (
	debug      = true
	poisonByte = 0xDB
)

func (s *Strings) checkSometimes() {
	if n := s.Len(); n&(n-1) == 0 {
		if fault := s.check(); fault != "" {
			arg.Panicf("intern.Strings", "%s", fault)
		}
	}
}

// checkSometimes does nothing if another goroutine holds a lock. The caller holds that of
// sh, and not the store's.
func (s *Shared) checkSometimes(sh *shard) {
	if n := s.Len(); n&(n-1) != 0 {
		return
	}
	for i := range s.shards {
		other := &s.shards[i]
		if other == sh {
			continue
		}
		if !other.mu.TryLock() {
			return
		}
		defer other.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if fault := s.check(); fault != "" {
		arg.Panicf("intern.Shared", "%s", fault)
	}
}

// fill fills a free record, but its first word, which links it.
func (s *store) fill(at, size uint32) {
	rest := s.rest(at, size)
	for i := range rest {
		rest[i] = poisonByte
	}
}

// mustBeFilled panics if a free record was written to.
func (s *store) mustBeFilled(at, size uint32) {
	for i, b := range s.rest(at, size) {
		if b != poisonByte {
			arg.Panicf("intern", "byte %d of the memory of a string was written after the string was freed", i)
		}
	}
}
