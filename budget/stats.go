// Stats: the figures of a budget.

package budget

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/freehold-go/freehold/budget/internal/pressure"
)

// Stats is a snapshot of a [Budget]. Sizes are bytes, int64 on every system: a limit may exceed a
// 32-bit address space.
type Stats struct {
	Limit    int64  // of the process
	Source   string // where Limit is from: a file, a variable, an option
	Headroom int64  // the part of Limit that is left free
	Problem  string // mistakes in sources of the limit, settings of the program, panics; or ""

	OffHeap int64 // committed by all heaps: see freehold.Stats.Committed
	Others  int64 // resident memory that neither Go nor a heap holds; 0 if unknown
	GoHeld  int64 // memory that Go's runtime has from the system: Go's memory limit counts it
	GoLive  int64 // objects that the last collection found live, with stacks and globals

	GoLimit   int64 // Go's memory limit; math.MaxInt64 if there is none
	GCPercent int   // GOGC; -1 if it is off; thousands while few bytes of Go's heap are live
	UserLimit bool  // Go's memory limit is the program's or GOMEMLIMIT's, and is left alone
	UserGC    bool  // GOGC is the program's or the variable's, and is left alone

	Short       int64  // bytes by which off-heap memory, others and Go's floor exceed Limit - Headroom
	Adjustments uint64 // changes of Go's memory limit and GOGC so far
	Reclaims    uint64 // collections so far that the budget ran because Go held too much

	Pressure Pressure // now
	Rounds   uint64   // so far: each trims the heaps, and calls functions if that is not enough
	Late     uint64   // calls so far of functions of OnPressure that passed their deadline
	Panics   uint64   // so far, of such functions and of Options.Logger; Problem has the last one

	Account AccountStats // of the process; its Name is "" before the first call of Budget.Account
}

// Stats returns the budget's figures. Others are up to 100 ms old, and up to 3 s while most of
// the limit is free. So are Short and Pressure, which depend on them. After Stop the settings are
// the restored ones, and Short and Pressure are from the last tick. Stats takes about a
// microsecond, and the time of Account.Stats if there is an account.
func (b *Budget) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.system.golang.read()
	late, panics, panicked := b.callbacks.failed()
	reclaims, _ := b.reclaims.soFar()
	st := Stats{
		Limit:    b.watch.Limit(),
		Source:   b.watch.Source(),
		Headroom: b.currentHeadroom(),
		Problem:  joined(joined(b.watch.Problem(), b.settings.problem), panicked),

		OffHeap: b.system.offHeap(),
		Others:  b.watch.Others(),
		GoHeld:  g.held,
		GoLive:  g.live,

		GoLimit:   g.limit,
		GCPercent: g.percent,
		UserLimit: b.settings.userLimit,
		UserGC:    b.settings.userPercent,

		Short:       b.plan.short,
		Adjustments: b.settings.changes,
		Reclaims:    reclaims,

		Pressure: b.alarm.pressure,
		Rounds:   b.alarm.roundCount,
		Late:     late,
		Panics:   panics,
	}
	if b.account != nil {
		st.Account = b.account.Stats()
	}
	return st
}

// String returns the Stats in one line.
func (b *Budget) String() string {
	if b == nil {
		return "<nil>"
	}
	return b.Stats().String()
}

// String returns the figures in one line.
func (st Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "memory budget of %s from %s: headroom %s, off-heap %s, others %s, Go %s",
		pressure.FormatSize(st.Limit), st.Source, pressure.FormatSize(st.Headroom), pressure.FormatSize(st.OffHeap), pressure.FormatSize(st.Others), pressure.FormatSize(st.GoHeld))
	limit := "off"
	if st.GoLimit != math.MaxInt64 {
		limit = pressure.FormatSize(st.GoLimit)
	}
	fmt.Fprintf(&b, "; GOMEMLIMIT %s%s", limit, ownSetting(st.UserLimit))
	percent := "off"
	if st.GCPercent >= 0 {
		percent = strconv.Itoa(st.GCPercent)
	}
	fmt.Fprintf(&b, ", GOGC %s%s", percent, ownSetting(st.UserGC))
	if st.GCPercent > maxPlainGOGC {
		fmt.Fprintf(&b, " (Go's heap to %s)", pressure.FormatSize(st.goal()))
	}
	if st.Short > 0 {
		fmt.Fprintf(&b, "; %s short", pressure.FormatSize(st.Short))
	}
	if st.Pressure.Level > Calm {
		fmt.Fprintf(&b, "; pressure %v", st.Pressure.Level)
	}
	if st.Account.Name != "" {
		fmt.Fprintf(&b, "; %v", st.Account)
	}
	if st.Problem != "" {
		fmt.Fprintf(&b, "; %s", st.Problem)
	}
	return b.String()
}

// maxPlainGOGC is the largest GOGC that is printed without the goal. A larger GOGC means that few
// bytes are live, and its number says little.
const maxPlainGOGC = 1000

// goal returns the bytes to which GOGC lets Go's heap grow, at most.
func (st Stats) goal() int64 {
	percent := float64(st.GCPercent) / 100
	return int64(max(float64(st.GoLive)*(1+percent), smallestGoal*percent))
}

// ownSetting returns the text after a setting that is the program's own.
func ownSetting(own bool) string {
	if own {
		return " (the program's own)"
	}
	return ""
}
