// Level: how short memory is. The types of internal/pressure have exported names here.

package budget

import "github.com/freehold-go/freehold/budget/internal/pressure"

// Level is how short memory is: Calm, Soft or Hard. Its String is "calm", "soft" or "hard".
type Level = pressure.Level

// The levels, in order.
const (
	Calm Level = iota // there is enough
	Soft              // memory should be given back
	Hard              // the limit is reached: the process may be killed, or requests are refused
)

// Pressure is given to functions of OnPressure: see [Budget.OnPressure].
type Pressure struct {
	Level  Level
	Wanted int64 // bytes that must become free for the level to be Calm; 0 at Calm
}

// ErrNoLimit is matched by the error of [Start] if no source has a limit. Then [Options].Limit or
// the variable FREEHOLD_MEMORY_LIMIT must say it.
var ErrNoLimit = pressure.ErrNoLimit
