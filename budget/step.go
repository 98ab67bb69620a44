// Step: what the collector gets, as a function of the figures.
//
//	limit of the process
//	|<--------------------------------------------------------------->|
//	| off-heap memory | others | what Go may hold: its limit | headroom |
//	                           |<- floor ->|
//
// Others are what the system counts and neither the heaps nor Go's runtime do: C's memory,
// temporary files in memory, other processes of the cgroup.

package budget

import (
	"math"
	"slices"
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
)

const (
	// The floor of Go's limit: below one and a half of the live bytes the collector takes
	// more time than the program.
	minGoHeap     = 8 << 20
	floorPercent  = 150
	smallestGoal  = 4 << 20 // Go's, for a GOGC of 100: see runtime/mgcpacer.go
	leastGoal     = 64 << 20
	defaultGOGC   = 100
	steadyPercent = 2 // a limit that would change by less stays

	// Off-heap memory grows by this part of the headroom between two looks at most.
	growthShare = 4
	// A limit below what Go holds makes the collector run all the time. Live objects are
	// scattered, and a span is free when the program has replaced the last one in it. So the
	// limit follows down what Go holds and this part of it, unless somebody waits for that and
	// this part of the headroom is used up.
	slackShare = 24
	minSlack   = 2 << 20
	pressShare = 2

	// A heap that is as many times as large as what is live costs next to nothing to collect.
	// Go gets more of the room only up to this part of the limit. What it needs for itself grows
	// with the largest heap so far and stays, and a large heap takes long to shrink.
	amplePercent = 1600
	ampleShare   = 40

	spareShare = 8
	// A wait has been worth it if it took away this part of what Go held too much. After a long
	// one that was not, waits are short for this many times as long.
	worthShare = 8
	shortShare = 10
	shortWait  = 100 * time.Millisecond
	longWait   = 5 * time.Second
	// Waits of seconds are for this many reclaims at least.
	manyReclaims = 8
)

// patience is how much is done about what Go holds too much, by its part of the headroom. Then
// the budget runs collections of its own, since a program at rest does not collect.
var patience = []struct {
	quarters int64
	wait     time.Duration // of one who takes off-heap memory
	pause    time.Duration // between reclaims, in times that the last one took
}{
	{3, longWait, 1}, // one more growth may pass the limit
	{2, time.Second, 3},
	{1, shortWait, 10},
}

// figures are what a step knows. Sizes are bytes.
type figures struct {
	limit    int64 // of the process
	headroom int64
	offHeap  int64 // committed by all heaps
	charged  int64 // the part of it that the process's account has
	others   int64 // resident memory that neither Go nor a heap has
	goHeap   int64 // Options.GoHeap
	ungiven  bool  // the limit is a part of physical memory
	golang   goFigures
	live     int64 // the least that one of the last cycles found live
	pressed  bool  // somebody takes off-heap memory, and no wait of late was in vain

	userLimit, userPercent bool // settings that stay as they are
}

// plan is what a step decides.
type plan struct {
	setting
	short int64 // bytes by which what is needed passes the limit less the headroom

	// Bytes that Go holds too much; 0 if its limit is the user's.
	over   int64 // more than is left of the limit less the headroom
	excess int64 // and more than its floor
	spare  int64 // of that, what is not worth a wait
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

// patience returns for how long one who takes off-heap memory waits for Go to give some back,
// and for how many times as long as the last reclaim took the next one does. The wait depends on
// how much of the headroom is used up, and is worth it only if Go holds more than it needs.
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

// needed returns the bytes that cannot be had by collecting: with Go's floor, or with all that
// it holds where the limit is the user's.
func (f figures) needed() int64 {
	goNeeds := f.floor()
	if f.userLimit {
		goNeeds = max(goNeeds, f.golang.held)
	}
	return f.offHeap + f.others + goNeeds
}

// pace returns the time to the next tick of a process at rest. Of what takes memory only others
// do not call for one. It grows with what is left: until the next tick they take all of that only
// if they grow by a third of a headroom in 100 ms.
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

// steady reports whether two values are so close that the change is not worth it. No limit
// is not close to any.
func steady(now, before int64) bool {
	return before > 0 && before != math.MaxInt64 && max(now-before, before-now) <= min(now, before)/100*steadyPercent
}

// percentFor returns the GOGC that lets the heap grow to a goal, or to all the room if the goal
// is more. Off does that if the limit is there to stop it, and is the budget's. Go's smallest
// goal grows with GOGC, so a live heap of almost nothing must not make it large.
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
