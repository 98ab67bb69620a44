// Options: how a budget is made.

package budget

import (
	"io"
	"log/slog"
	"time"

	"github.com/freehold-go/freehold/internal/arg"
)

// Options configures a [Budget]; nil means all defaults. Sizes are bytes.
type Options struct {
	// Limit is the memory that the process may have. 0 means to find it: the variable
	// FREEHOLD_MEMORY_LIMIT, as GOMEMLIMIT is written (512MiB); else the tightest limit of
	// the process's cgroups, of version 2 (memory.max, memory.high) and 1, that is below
	// physical memory; else three quarters of physical memory. The system is asked again each
	// second, or each ten while the process is at rest, so a container that is resized is
	// noticed. A cgroup's limit stays while its file cannot be read or understood, unless the
	// process is in another one then. A limit above that of a cgroup, or above physical memory,
	// is reported as a problem, and the lower one holds. A negative one panics.
	Limit int64

	// Headroom is the part of the limit that is left free, for what is not counted: page
	// tables, and what is allocated between two looks at the figures. 0 means
	// HeadroomRatio. It is half of the limit at most. A negative one panics.
	Headroom int64

	// HeadroomRatio is Headroom as a part of the limit, 0 to 0.5; anything else panics. 0
	// means a tenth, and 512 MiB at most.
	HeadroomRatio float64

	// GoHeap is the size up to which Go's heap grows before the collector runs, in place of
	// a ballast. 0 means four tenths of the limit, or sixteen times the live bytes if that is
	// more. If the limit is a part of physical memory, which the process shares with others, 0 means
	// twice the live bytes, as with a GOGC of 100, and 64 MiB at least. It is never more than the budget leaves. The collector takes less time with a larger
	// one: cycles are bytes allocated / (GoHeap - live bytes). A smaller one leaves memory to the
	// system and to off-heap memory that grows. A negative one panics.
	GoHeap int64

	// Deadline is how long a callback of OnPressure may take before the next one is called. 0
	// means a second. A negative one panics.
	Deadline time.Duration

	// Report gets one line when the budget starts: its Stats. nil means none.
	Report io.Writer

	// Logger gets that line too, and one with the Stats when the level of the pressure changes:
	// a warning for Soft and Hard, and Info for Calm. A rise is logged at once, unless trimming the
	// heaps was enough, and a fall when it has lasted ten seconds. The Logger may use the budget
	// and its accounts. Lines about the level are written by a goroutine of their own, so one that
	// blocks or panics stops nothing, and a last one may be written while Stop returns. nil means none.
	Logger *slog.Logger
}

const (
	defaultHeadroomRatio = 0.1
	maxDefaultHeadroom   = 512 << 20
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
	if o.Deadline < 0 {
		arg.Panicf("budget.Start", "Options.Deadline %v, want 0 or more", o.Deadline)
	}
	if !(o.HeadroomRatio >= 0 && o.HeadroomRatio <= 0.5) {
		arg.Panicf("budget.Start", "Options.HeadroomRatio %v, want 0 to 0.5", o.HeadroomRatio)
	}
}

// headroom returns the bytes of a limit to leave free.
func (o *Options) headroom(limit int64) int64 {
	switch {
	case o.Headroom > 0:
		return min(o.Headroom, limit/2)
	case o.HeadroomRatio > 0:
		return int64(float64(limit) * o.HeadroomRatio)
	}
	return min(int64(float64(limit)*defaultHeadroomRatio), maxDefaultHeadroom)
}
