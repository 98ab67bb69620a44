// Level: how short memory is.
//
//	|<- limit less headroom --------------------------------->|
//	| off-heap memory | others | Go's floor |                 |
//	                                    85%: soft         100%: hard
//
// What Go holds above its floor does not count, as its limit takes that away. The system's
// own signals raise the level, and only they know of other processes.

package budget

import "math"

// Level is how short memory is. Levels are in order.
type Level int

const (
	Calm Level = iota // there is enough
	Soft              // memory should be given back
	Hard              // the process is at its limit: it may be killed
)

var levelNames = [...]string{"calm", "soft", "hard"}

// String returns "calm", "soft" or "hard".
func (l Level) String() string { return levelNames[min(max(l, Calm), Hard)] }

// Pressure is what a callback is told: see [Budget.OnPressure].
type Pressure struct {
	Level  Level
	Wanted int64 // bytes that should become free for the level to be Calm; 0 if it is
}

const (
	softPercent = 85
	// A level falls only when it is this part of the limit below where it begins.
	calmShare = 32
)

// levels returns what must be needed for the level to be Soft and Hard.
func (f figures) levels() (soft, hard int64) {
	hard = f.limit - f.headroom
	return hard / 100 * softPercent, hard
}

// rise returns by how much what is needed may grow before it raises a level.
func (f figures) rise(from Level) int64 {
	soft, hard := f.levels()
	switch from {
	case Calm:
		return soft - f.needed()
	case Soft:
		return hard - f.needed()
	}
	return math.MaxInt64
}

// pressureOf returns the pressure for figures, after a level before and with a level that the
// system signals.
func pressureOf(f figures, before, signaled Level) Pressure {
	soft, hard := f.levels()
	needed, slack := f.needed(), hard/calmShare
	from := func(l Level, begin int64) bool {
		if before >= l {
			begin -= slack
		}
		return needed > begin
	}
	p := Pressure{Level: Calm}
	switch {
	case from(Hard, hard):
		p.Level = Hard
	case from(Soft, soft):
		p.Level = Soft
	}
	p.Level = max(p.Level, signaled)
	if p.Level > Calm {
		p.Wanted = max(needed-soft, 0) + slack
	}
	return p
}
