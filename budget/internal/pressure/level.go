// Level: how short memory is.

package pressure

import "math"

// Level is how short memory is.
type Level int

// The levels, in order.
const (
	Calm Level = iota // there is enough
	Soft              // memory should be given back
	Hard              // the limit is reached
)

var levelNames = [...]string{"calm", "soft", "hard"}

// String returns "calm", "soft" or "hard".
func (l Level) String() string { return levelNames[min(max(l, Calm), Hard)] }

// State is a level, and how many bytes must become free for it to be Calm.
type State struct {
	Level  Level
	Wanted int64 // 0 if the level is Calm
}

const (
	// SoftPercent is the part of a limit above which the level is Soft, unless a caller says
	// otherwise.
	SoftPercent = 85
	// A level ends at fewer bytes than it begins. The difference is 1/HysteresisShare of the bytes
	// at which it begins, or of the room for the levels of a process.
	HysteresisShare = 32
)

// Mark has the two thresholds of a level. The level begins when use rises above Begin. It ends when
// use is End or less.
type Mark struct{ Begin, End int64 }

// MarkAt returns the Mark that begins at a number of bytes. 0 bytes means never.
func MarkAt(begin int64) Mark {
	if begin == 0 {
		return Mark{math.MaxInt64, math.MaxInt64}
	}
	return Mark{begin, begin - begin/HysteresisShare}
}

// LevelOf returns the level for used bytes. before is the level at the last call.
func LevelOf(used int64, before Level, soft, hard Mark) Level {
	passed := func(l Level, m Mark) bool {
		if before >= l {
			return used > m.End
		}
		return used > m.Begin
	}
	switch {
	case passed(Hard, hard):
		return Hard
	case passed(Soft, soft):
		return Soft
	}
	return Calm
}

// marks returns the thresholds of a process that may use room bytes:
//
//	|<- room: limit less headroom ---------------------------->|
//	| off-heap memory | others | Go's floor |                 |
//	                                    85%: soft         100%: hard
//
// Memory that Go holds above its floor does not count, since a lower limit makes Go give it back.
func marks(room int64) (soft, hard Mark) {
	slack := room / HysteresisShare
	begin := room / 100 * SoftPercent
	return Mark{begin, begin - slack}, Mark{room, room - slack}
}

// Of returns the state of a process from the bytes that it needs and its room. before is its level
// at the last call. signaled is the kernel's level, since only the kernel knows about other
// processes. The result is never below it.
func Of(needed, room int64, before, signaled Level) State {
	soft, hard := marks(room)
	s := State{Level: max(LevelOf(needed, before, soft, hard), signaled)}
	if s.Level > Calm {
		s.Wanted = max(needed-soft.Begin, 0) + room/HysteresisShare
	}
	return s
}

// Rise returns the bytes by which needed may grow before the level rises. Hard cannot rise, so
// there it is math.MaxInt64.
func Rise(needed, room int64, from Level) int64 {
	soft, hard := marks(room)
	switch from {
	case Calm:
		return soft.Begin - needed
	case Soft:
		return hard.Begin - needed
	}
	return math.MaxInt64
}
