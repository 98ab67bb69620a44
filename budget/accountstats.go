// Account stats: the figures of an account.

package budget

import (
	"fmt"
	"strings"

	"github.com/freehold-go/freehold/budget/internal/pressure"
)

// AccountStats is a snapshot of an [Account]. Sizes are bytes.
type AccountStats struct {
	Name string // after the names of the accounts above: process/search/tenant

	Soft, MaxBytes int64 // the account's own limits, as they hold now; 0 means none
	Used           int64 // committed by the account and the accounts below it
	Peak           int64 // the maximum of Used so far
	Room           int64 // largest charge that its limit and those above allow, or math.MaxInt64
	Committed      int64 // by the account's own heap; part of Used

	Live      int   // live blocks of the account's own
	LiveBytes int64 // their bytes, as in freehold.Stats

	Refusals uint64 // requests so far that found no room, even if evict then made room
	Evicted  int64  // bytes so far that functions of AllocOrEvict have freed

	Pressure Pressure // now
	Rounds   uint64   // so far: each trims, and then calls functions of OnPressure if need be
	Late     uint64   // calls of such functions so far that passed their deadline
	Panics   uint64   // calls of such functions so far that panicked

	Closed  bool   // the figures are from the moment before Close
	Problem string // message of the last panic, or ""
}

// Stats returns the account's figures. It costs as much as Heap.Stats.
func (a *Account) Stats() AccountStats {
	a.node.MustBeMade("Account.Stats")
	own, f := a.h.Stats(), a.node.Figures()
	if final := a.final.Load(); final != nil { // last, since Close may run meanwhile
		return *final
	}
	st := AccountStats{
		Name: a.node.Name(),
		Soft: f.Soft, MaxBytes: f.Hard, Used: f.Used, Peak: f.Peak, Room: f.Room,
		Committed: int64(own.Committed),
		Live:      own.Blocks, LiveBytes: int64(own.Allocated),
		Refusals: f.Refusals, Evicted: a.evicted.Load(),
		Pressure: Pressure(f.State), Rounds: a.roundCount.Load(),
	}
	st.Late, st.Panics, st.Problem = a.callbacks.failed()
	return st
}

// AllAccounts returns the Stats of all open accounts of the process, in the order in which they
// were made. It costs a call of Stats for each.
func AllAccounts() []AccountStats {
	var all []AccountStats
	eachAccount(func(a *Account) {
		if st := a.Stats(); !st.Closed {
			all = append(all, st)
		}
	})
	return all
}

// String returns the figures in one line.
func (st AccountStats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "account %q: ", st.Name)
	if st.Closed {
		b.WriteString("closed with ")
	}
	blocks := "blocks"
	if st.Live == 1 {
		blocks = "block"
	}
	fmt.Fprintf(&b, "%s used", pressure.FormatSize(st.Used))
	if below := st.Used - st.Committed; below > 0 {
		fmt.Fprintf(&b, ", %s of it by the accounts below", pressure.FormatSize(below))
		blocks += " of its own"
	}
	fmt.Fprintf(&b, ", %s live in %d %s", pressure.FormatSize(st.LiveBytes), st.Live, blocks)
	if st.Soft > 0 {
		fmt.Fprintf(&b, ", soft limit %s", pressure.FormatSize(st.Soft))
	}
	if st.MaxBytes > 0 {
		fmt.Fprintf(&b, ", limit %s", pressure.FormatSize(st.MaxBytes))
	}
	if st.Pressure.Level > Calm {
		fmt.Fprintf(&b, ", pressure %v", st.Pressure.Level)
	}
	return b.String()
}

// String returns the Stats in one line.
func (a *Account) String() string {
	if a == nil {
		return "<nil>"
	}
	return a.Stats().String()
}
