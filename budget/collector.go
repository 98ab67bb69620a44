// Collector: the figures and the settings of Go's garbage collector.

package budget

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
)

// goFigures are the runtime's figures. Sizes are bytes.
type goFigures struct {
	held    int64 // memory from the system that was not returned: Go's memory limit counts it
	outside int64 // the part of held that objects cannot use: stacks, spans, the collector's own
	live    int64 // objects that the last collection found, and scanned stacks and globals
	cycles  int64 // collections so far
	limit   int64 // Go's memory limit; math.MaxInt64 is none
	percent int   // GOGC; -1 is off
}

// lives has the live bytes of the last cycles that were noted. Objects that the program allocates
// during a cycle are live in it, so one cycle may find twice as much as the next.
type lives struct {
	cycles int64 // at the last note
	notes  int
	bytes  [4]int64
}

// note notes the last cycle.
func (l *lives) note(g goFigures) {
	if l.cycles == 0 {
		for i := range l.bytes {
			l.bytes[i] = g.live
		}
	}
	if g.cycles != l.cycles {
		l.bytes[l.notes] = g.live
		l.notes = (l.notes + 1) % len(l.bytes)
	}
	l.cycles = g.cycles
}

// least returns the fewest live bytes of a cycle.
func (l *lives) least() int64 { return slices.Min(l.bytes[:]) }

// golang is the Go runtime. Tests have their own.
type golang interface {
	read() goFigures
	// These return the setting before.
	setLimit(int64) int64
	setPercent(int) int
	freeOSMemory() // collects, and returns free memory to the system
}

// theRuntime is the process's runtime. It is not safe for concurrent use.
type theRuntime struct{ samples []metrics.Sample }

// The runtime's metrics, in the order of theRuntime.samples.
const (
	metricTotal = iota
	metricReleased
	metricObjects
	metricUnusedInSpans
	metricFreeSpans
	metricLiveObjects
	metricScannedStacks
	metricScannedGlobals
	metricCycles
	metricMemoryLimit
	metricGogc
	numMetrics
)

var metricNames = [numMetrics]string{
	metricTotal:          "/memory/classes/total:bytes",
	metricReleased:       "/memory/classes/heap/released:bytes",
	metricObjects:        "/memory/classes/heap/objects:bytes",
	metricUnusedInSpans:  "/memory/classes/heap/unused:bytes",
	metricFreeSpans:      "/memory/classes/heap/free:bytes",
	metricLiveObjects:    "/gc/heap/live:bytes",
	metricScannedStacks:  "/gc/scan/stack:bytes",
	metricScannedGlobals: "/gc/scan/globals:bytes",
	metricCycles:         "/gc/cycles/total:gc-cycles",
	metricMemoryLimit:    "/gc/gomemlimit:bytes",
	metricGogc:           "/gc/gogc:percent",
}

func newRuntime() *theRuntime {
	r := &theRuntime{make([]metrics.Sample, numMetrics)}
	for i, name := range metricNames {
		r.samples[i].Name = name
	}
	return r
}

func (r *theRuntime) read() goFigures {
	metrics.Read(r.samples)
	var v [numMetrics]int64
	for i, s := range r.samples {
		if s.Value.Kind() == metrics.KindUint64 {
			v[i] = int64(min(s.Value.Uint64(), math.MaxInt64))
		}
	}
	held := v[metricTotal] - v[metricReleased]
	f := goFigures{
		held:    held,
		outside: held - v[metricObjects] - v[metricUnusedInSpans] - v[metricFreeSpans],
		live:    v[metricLiveObjects] + v[metricScannedStacks] + v[metricScannedGlobals],
		cycles:  v[metricCycles],
		limit:   v[metricMemoryLimit],
		percent: int(v[metricGogc]),
	}
	if v[metricGogc] > math.MaxInt32 { // off
		f.percent = -1
	}
	return f
}

// onCycle calls f after each collection until f returns false. f runs in the runtime's goroutine
// for cleanups.
func onCycle(f func() (more bool)) {
	runtime.AddCleanup(new([2]*byte), func(f func() bool) {
		if f() {
			onCycle(f)
		}
	}, f)
}

func (*theRuntime) setLimit(n int64) int64 { return debug.SetMemoryLimit(n) }
func (*theRuntime) setPercent(n int) int   { return debug.SetGCPercent(n) }
func (*theRuntime) freeOSMemory()          { debug.FreeOSMemory() }
