//go:build !freehold_debug

package intern

// debug is false in normal builds: the compiler drops the calls of debug_on.go.
const debug = false

func (s *Strings) checkSometimes()        {}
func (s *Shared) checkSometimes(_ *shard) {}
func (s *store) fill(_, _ uint32)         {}
func (s *store) mustBeFilled(_, _ uint32) {}
