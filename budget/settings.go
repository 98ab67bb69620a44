// Settings: Go's memory limit and GOGC, which the budget sets and the program may set too.

package budget

import "math"

const (
	problemUsersLimit = "the program changed Go's memory limit, which the budget leaves alone from then on"
	problemUsersGC    = "the program changed GOGC, which the budget leaves alone from then on"
)

// setting is a memory limit and a GOGC.
type setting struct {
	limit   int64
	percent int
}

// settings sets the runtime. A setting of the program's own stays.
type settings struct {
	golang      golang
	original    setting // at Start
	current     setting // as the budget set or found it last
	userLimit   bool    // the memory limit is the program's
	userPercent bool    // GOGC is the program's
	problem     string  // names the settings that the program changed after Start; or ""
	changes     uint64
}

// newSettings finds which settings are the program's: set by the environment, or by a call before
// Start. The budget takes over the others. As in the runtime, an empty variable counts as unset.
func newSettings(golang golang, lookupEnv func(string) (string, bool)) settings {
	given := func(name string) bool {
		value, _ := lookupEnv(name)
		return value != ""
	}
	g := golang.read()
	found := setting{g.limit, g.percent}
	return settings{
		golang: golang, original: found, current: found,
		userLimit:   given("GOMEMLIMIT") || g.limit != math.MaxInt64,
		userPercent: given("GOGC") || g.percent != defaultGOGC,
	}
}

// note notes the present settings. A setting that differs from the budget's is the program's.
func (s *settings) note(found setting) {
	if found.limit != s.current.limit && !s.userLimit {
		s.userLimit = true
		s.problem = joined(s.problem, problemUsersLimit)
	}
	if found.percent != s.current.percent && !s.userPercent {
		s.userPercent = true
		s.problem = joined(s.problem, problemUsersGC)
	}
	s.current = found
}

// set sets Go's limit and GOGC, except one that is the program's. It lowers a limit before it
// changes GOGC, and raises a limit after that, so Go's heap is bounded in between.
func (s *settings) set(to setting) {
	if s.userLimit {
		to.limit = s.current.limit
	}
	if s.userPercent {
		to.percent = s.current.percent
	}
	if to == s.current {
		return
	}
	s.changes++
	before, found := s.current, to
	if to.limit < before.limit {
		found.limit = swap(s.golang.setLimit, before.limit, to.limit)
	}
	if to.percent != before.percent {
		found.percent = swap(s.golang.setPercent, before.percent, to.percent)
	}
	if to.limit > before.limit {
		found.limit = swap(s.golang.setLimit, before.limit, to.limit)
	}
	s.current = to
	s.note(found)
}

// swap sets after if the value in force is before. If the program has set another value meanwhile,
// swap sets that value again. It returns the value in force. The program may interfere any number
// of times: each pass of the loop sets the value that the last one found.
func swap[T comparable](set func(T) T, before, after T) T {
	for found := set(after); found != before; found = set(after) {
		before, after = after, found
	}
	return after
}

// joined joins two texts. Each may be empty.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
