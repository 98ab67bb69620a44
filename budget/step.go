// Step: the settings of Go's collector, as a function of the figures.
//
//	limit of the process
//	|<--------------------------------------------------------------->|
//	| off-heap memory | others | room for Go: its limit    | headroom |
//	                           |<- floor ->|
//
// Others are bytes that the system counts and neither the heaps nor Go's runtime do: C's memory,
// temporary files in memory, other processes of the cgroup.

package budget

import (
	"math"
	"slices"
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
)

const (
	// Go's floor: with a limit below one and a half of the live bytes the collector takes more
	// time than the program.
	minGoHeap    = 8 << 20
	floorPercent = 150

	smallestGoal = 4 << 20  // Go's, for a GOGC of 100: see runtime/mgcpacer.go
	leastGoal    = 64 << 20 // where the limit is a part of physical memory
	defaultGOGC  = 100

	// steadyPercent is the part of a setting by which it must change to be set.
	steadyPercent = 2

	// growthShare is the part of the headroom by which off-heap memory may grow between two ticks.
	growthShare = 4

	// The collector runs all the time if Go's limit is below the memory that Go holds. Live
	// objects are scattered, and a span is free only when the program has replaced the last one in
	// it. So the limit stays this part of the held bytes above them while they fall. It falls at
	// once if a goroutine waits and this part of the headroom is used up.
	slackShare = 24
	minSlack   = 2 << 20
	pressShare = 2

	// A heap of 16 times the live bytes costs next to nothing to collect. Beyond that Go gets room
	// only up to 40% of the limit: the runtime's own memory grows with the largest heap so far and
	// stays, and a large heap takes long to shrink.
	amplePercent = 1600
	ampleShare   = 40

	// spareShare is the part of the floor by which Go may exceed its room without a wait.
	spareShare = 8
	// A wait was worth it if Go's excess fell by this part. After a long wait that was not, waits
	// are short for this many times as long.
	worthShare = 8
	shortShare = 10
	shortWait  = 100 * time.Millisecond
	longWait   = 5 * time.Second
	// manyReclaims is the least number of reclaims in a wait of seconds.
	manyReclaims = 8
)

// patience says how the budget acts while Go exceeds its room by a part of the headroom: goroutines
// that take off-heap memory wait, and the budget runs reclaims, since a program at rest does not
// collect.
var patience = []struct {
	quarters int64         // of the headroom
	wait     time.Duration // of a goroutine
	pause    time.Duration // between reclaims, as a multiple of the last one's time
}{
	{3, longWait, 1}, // one more growth may pass the limit
	{2, time.Second, 3},
	{1, shortWait, 10},
}

// figures are the input of a step. Sizes are bytes.
type figures struct {
	limit    int64 // of the process
	headroom int64
	offHeap  int64 // committed by all heaps
	charged  int64 // the part of offHeap that the process's account has
	others   int64 // resident memory of neither Go nor a heap
	goHeap   int64 // Options.GoHeap
	ungiven  bool  // the limit is a part of physical memory
	golang   goFigures
	live     int64 // the fewest live bytes of the last cycles
	pressed  bool  // a goroutine takes off-heap memory, and no wait was in vain of late

	userLimit, userPercent bool // settings that stay as they are
}

// plan is the result of a step.
type plan struct {
	setting
	short int64 // bytes by which the need exceeds the limit less the headroom

	// Bytes of Go's memory; 0 if its limit is the user's.
	over   int64 // above the room for Go
	excess int64 // above the room for Go and above its floor
	spare  int64 // of excess, too few to wait for
}

// step returns the plan for figures after a previous setting.
func step(f figures, before setting) plan {
	g := f.golang
	p := plan{setting: before}
	room := f.limit - f.headroom - f.offHeap - f.others
	floor := f.floor()
	p.short = max(f.needed()-(f.limit-f.headroom), 0)
	if !f.userLimit {
		limit := max(room, floor)
		p.over, p.excess = max(g.held-room, 0), max(g.held-limit, 0)
		p.spare = max(floor/spareShare, minSlack)
		if p.excess > 0 && !(f.pressed && p.over > f.headroom/pressShare) {
			limit = max(limit, min(before.limit, g.held+max(g.held/slackShare, minSlack)))
		}
		if !steady(limit, before.limit) {
			p.limit = limit
		}
	}
	if !f.userPercent {
		percent := percentFor(f.goal(room), room, f.userLimit, g)
		if percent < 0 || before.percent < 0 || !steady(int64(percent), int64(before.percent)) {
			p.percent = percent
		}
	}
	return p
}

// patience returns how long a goroutine that takes off-heap memory waits for Go to shrink, and the
// pause before the next reclaim, as a multiple of the last one's time. Both depend on the used part
// of the headroom. A wait is worth it only if Go holds more than it needs.
func (p plan) patience(headroom int64) (wait, pause time.Duration) {
	for _, step := range slices.Backward(patience) {
		if p.excess > headroom/4*step.quarters {
			pause = step.pause
		}
		if p.over > headroom/4*step.quarters && p.excess > p.spare {
			wait = step.wait
		}
	}
	return wait, pause
}

// needed returns the bytes that collections cannot free. They include Go's floor, or all memory
// that Go holds if its limit is the user's.
func (f figures) needed() int64 {
	goNeeds := f.floor()
	if f.userLimit {
		goNeeds = max(goNeeds, f.golang.held)
	}
	return f.offHeap + f.others + goNeeds
}

// pace returns the time to the next tick of a process at rest. Only others can take memory
// without calling for a tick. So the pace grows with the free memory: until the next tick others
// can fill it only if they grow by a third of a headroom in 100 ms.
func (f figures) pace() time.Duration {
	left := f.limit - f.offHeap - f.others - f.golang.held
	headrooms := left / max(f.headroom, 1)
	return pressure.LookTime * time.Duration(min(max(3*headrooms-2, 1), int64(calmTime/pressure.LookTime)))
}

// floor returns the least that Go's limit may be.
func (f figures) floor() int64 {
	return f.golang.outside + max(f.live/100*floorPercent, minGoHeap)
}

// goal returns the bytes that Go's heap should grow to.
func (f figures) goal(room int64) int64 {
	switch {
	case f.goHeap > 0:
		return f.goHeap
	case f.ungiven:
		// Go's own, but for a process that has little on Go's heap and would collect all the time.
		return max(f.golang.live/100*(100+defaultGOGC), leastGoal)
	case f.userLimit:
		return room
	}
	return max(f.golang.live/100*amplePercent, f.limit/100*ampleShare)
}

// steady reports whether two values are so close that a change is not worth it. No limit is not
// close to any limit.
func steady(now, before int64) bool {
	return before > 0 && before != math.MaxInt64 && max(now-before, before-now) <= min(now, before)/100*steadyPercent
}

// percentFor returns the GOGC that lets the heap grow to a goal, or to the room if that is less.
// If the limit is the budget's, it stops the heap at the room, and GOGC is off. Go's smallest
// goal grows with GOGC, so a nearly empty heap must not make GOGC large.
func percentFor(goal, room int64, userLimit bool, g goFigures) int {
	if goal >= room {
		if !userLimit {
			return -1
		}
		goal = room
	}
	live := max(g.live, 1)
	percent := min(float64(goal-live)/float64(live)*100, float64(goal)/smallestGoal*100)
	return int(min(max(percent, defaultGOGC), math.MaxInt32))
}
