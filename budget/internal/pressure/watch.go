// Watch: the process's limit, use and signals, as last read.

package pressure

import (
	"strings"
	"time"
)

const (
	// ReadTime is the least time between two reads of the system's use and signals.
	ReadTime = 100 * time.Millisecond
	// SearchTime is the least time between two searches for the limit.
	SearchTime = time.Second
)

// Watch reads the system. Its caller guards it.
type Watch struct {
	machine Machine
	asked   int64 // the limit that an option sets; 0 if none does

	limit   foundLimit
	problem string // of the limit's sources
	others  int64  // resident bytes that neither Go nor a heap holds

	readNext   time.Time // no read before
	searchNext time.Time // no search before

	stallFile string // of PSI; "" if there is none
	signals   signals
}

// Start finds the limit: asked bytes, unless that is 0 or the system has less. On an error there is
// no limit.
func (w *Watch) Start(m Machine, asked int64, now time.Time) error {
	found, problem := m.findLimit(asked, nil)
	if found.bytes == 0 {
		return problem
	}
	*w = Watch{machine: m, asked: asked, limit: found, problem: text(problem), searchNext: now.Add(SearchTime)}
	w.stallFile = m.pressureFile("")
	return nil
}

// Limit returns the process's limit in bytes.
func (w *Watch) Limit() int64 { return w.limit.bytes }

// Source returns where the limit is from: a file, a variable, an option.
func (w *Watch) Source() string { return w.limit.source }

// OfGroup reports whether the limit is a cgroup's.
func (w *Watch) OfGroup() bool { return w.limit.group != nil }

// OfPhysical reports whether the limit is a part of physical memory. Then other processes may need
// this memory too.
func (w *Watch) OfPhysical() bool { return w.limit.ofPhysical }

// Problem describes the mistakes in sources of the limit, or is "".
func (w *Watch) Problem() string { return w.problem }

// Others returns the resident bytes that neither Go's runtime nor a heap holds.
func (w *Watch) Others() int64 { return w.others }

// Signaled returns the level that the kernel signals.
func (w *Watch) Signaled(now time.Time) Level { return w.signals.at(now) }

// Search looks for the limit again if that is due. The next search is due after pause, or after
// SearchTime if that is longer.
func (w *Watch) Search(now time.Time, pause time.Duration) {
	if Ahead(now, w.searchNext) {
		return
	}
	w.searchNext = now.Add(max(SearchTime, pause))
	found, problem := w.machine.findLimit(w.asked, w.limit.groups)
	w.problem = text(problem)
	if found.bytes > 0 {
		w.limit = found
	}
	// The process may have been moved to another cgroup.
	if file := w.machine.pressureFile(w.stallFile); file != w.stallFile {
		w.stallFile, w.signals.stall = file, stall{}
	}
}

// ReadIfDue reads the system's use and signals if that is due. held is the memory of Go's runtime
// and the heaps now, which does not count as others. room is the limit less the headroom.
func (w *Watch) ReadIfDue(now time.Time, held, room int64) {
	if Ahead(now, w.readNext) {
		return
	}
	w.readNext = now.Add(ReadTime)
	resident := w.machine.residentOf(w.limit)
	w.others = max(resident-held, 0)
	w.signals.observeEvents(w.machine.Files, w.limit, resident > room, now)
	if w.stallFile == "" {
		return
	}
	if total, ok := stallTotal(w.machine.Files, w.stallFile); ok && w.signals.stall.observe(now, total) {
		w.signals.raise(Soft, now)
	}
}

// text returns an error in one line: joined errors have a line each.
func text(err error) string {
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}
