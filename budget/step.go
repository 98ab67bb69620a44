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
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
)

const (
	// Constants that end in Share are denominators: a growthShare of 4 is a quarter.

	// Go's floor: with a limit below one and a half times the live bytes, the collector takes more
	// time than the program.
	minGoHeap    = 8 << 20
	floorPercent = 150

	smallestGoal = 4 << 20  // Go's, for a GOGC of 100: see runtime/mgcpacer.go
	leastGoal    = 64 << 20 // where the limit is a part of physical memory
	defaultGOGC  = 100

	// A setting stays unless the new value differs by more than steadyPercent.
	steadyPercent = 2

	// Off-heap memory may grow by 1/growthShare of the headroom between two ticks.
	growthShare = 4

	// The collector runs all the time if Go's limit is below the memory that Go holds. Go shrinks
	// slowly: live objects are scattered, and a span is free only when the program has replaced its
	// last object. So the limit follows the held bytes down, 1/slackShare above them. It falls at
	// once if a goroutine waits and 1/pressShare of the headroom is used up.
	slackShare = 24
	minSlack   = 2 << 20
	pressShare = 2

	// Go's heap may grow to 16 times the live bytes, or to 40% of the limit if that is more. At 16
	// times, collection costs next to nothing. A larger heap has a price: it takes long to shrink,
	// and the runtime's own memory grows with it and never shrinks.
	ampleLivePercent  = 1600
	ampleLimitPercent = 40

	// No goroutine waits while Go's excess is 1/spareShare of the floor or less.
	spareShare = 8
	// The ends of waits: see wait.go.
	worthShare    = 8
	shortMultiple = 10
	shortWait     = 100 * time.Millisecond
	longWait      = 5 * time.Second
	// manyReclaims is the least number of reclaims in a wait of seconds.
	manyReclaims = 8
)

// waitTable has the longest wait of a goroutine and the pause between reclaims: see wait.go. The
// first row counts for which Go uses up more than the row's quarters of the headroom.
var waitTable = []struct {
	quarters int64         // of the headroom
	wait     time.Duration // of a goroutine
	pause    int64         // between reclaims, as a multiple of the last one's time
}{
	{3, longWait, 1}, // one more growth may pass the limit
	{2, time.Second, 3},
	{1, shortWait, 10},
}

// figures are the input of a step. Sizes are bytes.
type figures struct {
	limit      int64 // of the process
	headroom   int64
	offHeap    int64 // committed by all heaps
	charged    int64 // the part of offHeap that the process's account has
	others     int64 // resident memory that neither Go nor a heap holds
	goHeap     int64 // Options.GoHeap
	ofPhysical bool  // the limit is a part of physical memory
	golang     goFigures
	live       int64 // the fewest live bytes of the last cycles
	pressed    bool  // a goroutine is in waitForGo, and waits are not short
	userLimit  bool  // Go's limit stays as it is
}

// plan is the result of a step.
type plan struct {
	setting
	short int64 // bytes by which the need exceeds the limit less the headroom

	// Bytes of Go's memory; 0 if its limit is the user's.
	over   int64 // above the room for Go
	excess int64 // above the room for Go or Go's floor, the larger one
	spare  int64 // an excess up to this is not worth a wait
}

// step returns the plan for figures. before is the setting in force. The plan has a GOGC even if
// the program has set one: settings.set then leaves the program's alone.
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
		atOnce := f.pressed && p.over > f.headroom/pressShare
		if p.excess > 0 && !atOnce { // the limit falls by degrees, just above the held bytes
			aboveHeld := g.held + max(g.held/slackShare, minSlack)
			limit = max(limit, min(before.limit, aboveHeld))
		}
		if !steady(limit, before.limit) {
			p.limit = limit
		}
	}
	if percent := percentFor(f.goal(room), room, f.userLimit, g); !steady(int64(percent), int64(before.percent)) {
		p.percent = percent
	}
	return p
}

// longestWait returns how long a goroutine that takes off-heap memory waits at most, or 0.
func (p plan) longestWait(headroom int64) time.Duration {
	for _, row := range waitTable {
		if p.over > headroom/4*row.quarters && p.excess > p.spare {
			return row.wait
		}
	}
	return 0
}

// reclaimPause returns the pause between two reclaims, as a multiple of the time that the last one
// took. 0 means that no reclaim is needed.
func (p plan) reclaimPause(headroom int64) (times int64) {
	for _, row := range waitTable {
		if p.excess > headroom/4*row.quarters {
			return row.pause
		}
	}
	return 0
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

// pace returns the time to the next tick of a process at rest. Only others can take memory without
// calling for a tick. So the time grows with the free memory. Others can fill all of it before the
// next tick only if they take a third of the headroom or more in each 100 ms.
func (f figures) pace() time.Duration {
	left := f.limit - f.offHeap - f.others - f.golang.held
	headrooms := left / max(f.headroom, 1)
	return pressure.ReadTime * time.Duration(min(max(3*headrooms-2, 1), int64(restTime/pressure.ReadTime)))
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
	case f.ofPhysical:
		// Go's own goal, but at least 64 MiB: with less, a small heap is collected all the time.
		return max(f.golang.live/100*(100+defaultGOGC), leastGoal)
	case f.userLimit: // GOGC alone keeps the heap in its room
		return room
	}
	return max(f.golang.live/100*ampleLivePercent, f.limit/100*ampleLimitPercent)
}

// steady reports whether two values are so close that a change is not worth it. A change from or to
// math.MaxInt64 (no limit) or -1 (GOGC off) always is.
func steady(now, before int64) bool {
	return before > 0 && before != math.MaxInt64 && max(now-before, before-now) <= min(now, before)/100*steadyPercent
}

// percentFor returns the GOGC that lets the heap grow to a goal, and Go's default if that is
// larger. If the room is less than the goal, there are two cases. If the budget sets Go's limit,
// GOGC is off (-1), since the limit keeps the heap in its room. If the limit is the user's, the
// room is the goal. Go's smallest goal grows with GOGC, so a nearly empty heap must not make GOGC
// large.
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
