// Options: how a budget is made.

package budget

import (
	"log/slog"

	"github.com/freehold-go/freehold/internal/arg"
)

// Options configures a [Budget]; nil means all defaults. Sizes are bytes. Negative sizes panic.
type Options struct {
	// Limit is the memory that the process may have. 0 means the first of these that is set:
	//
	//   - the variable FREEHOLD_MEMORY_LIMIT, written as GOMEMLIMIT is (512MiB)
	//   - the tightest limit of the process's cgroups, of version 2 (memory.max, memory.high)
	//     or 1, if that is below physical memory
	//   - three quarters of physical memory
	//
	// The budget reads them again each second, or each ten seconds while the process is at rest,
	// so it follows a container that is resized. While the file of a cgroup cannot be read or
	// understood, the last limit of that cgroup stays. If Limit is above a cgroup's limit, or above
	// physical memory, the lower one holds and Stats.Problem says so.
	Limit int64

	// Headroom is the part of the limit that is left free for memory that the budget does not
	// count: page tables, and memory allocated between two ticks. 0 means a tenth of the limit,
	// at most 512 MiB. It is at most half of the limit.
	Headroom int64

	// GoHeap is the size to which Go's heap grows before the collector runs. It replaces a
	// ballast. It is never more than the budget leaves for Go. 0 means the larger one of four
	// tenths of the limit and sixteen times the live bytes. If the limit is a part of physical
	// memory, 0 means twice the live bytes, as with a GOGC of 100, and at least 64 MiB. Otherwise,
	// if Go's memory limit is the program's own, 0 means all that the budget leaves for Go.
	//
	// The number of collections is bytes allocated / (GoHeap - live bytes). A larger GoHeap saves
	// the collector's time. A smaller one leaves memory to the system, and to off-heap memory that
	// grows fast.
	GoHeap int64

	// Logger gets a line with the Stats when the budget starts, and one when the level of the
	// pressure changes: a warning for Soft and Hard, Info for Calm. A rise is logged at once,
	// unless trimming the heaps ends it. A fall is logged when it has lasted ten seconds. nil
	// means no lines.
	//
	// The Logger may use the budget and its accounts. A goroutine of its own writes the lines about
	// levels, so a Logger that blocks or panics stops nothing. It may write a last line while Stop
	// returns.
	Logger *slog.Logger
}

const (
	headroomShare = 10
	mostHeadroom  = 512 << 20
)

// check panics for options that are a mistake.
func (o *Options) check() {
	for _, size := range []struct {
		name string
		n    int64
	}{{"Limit", o.Limit}, {"Headroom", o.Headroom}, {"GoHeap", o.GoHeap}} {
		if size.n < 0 {
			arg.Panicf("budget.Start", "Options.%s %d, want 0 or more", size.name, size.n)
		}
	}
}

// headroomOf returns the bytes of a limit to leave free.
func (o *Options) headroomOf(limit int64) int64 {
	if o.Headroom > 0 {
		return min(o.Headroom, limit/2)
	}
	return min(limit/headroomShare, mostHeadroom)
}

// currentHeadroom returns the bytes of the limit that are left free. mu is held.
func (b *Budget) currentHeadroom() int64 { return b.options.headroomOf(b.watch.Limit()) }
