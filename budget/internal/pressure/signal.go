// Signals: the kernel's signs that memory is short.
//
// PSI (pressure stall information) counts the time for which tasks of the cgroup, or of the
// machine, have waited for memory. If it grows by stallTime within stallWindow, a read raises
// Soft. The kernel has triggers for this rule, which this package does not use. Without
// CAP_SYS_RESOURCE the kernel checks them only every 2 s, and a wait for one blocks a thread.
//
// The events of a cgroup count how often it was at its limits. In a container that reads files,
// page cache alone brings it there. So the events high and max raise Hard only while the memory
// that the kernel cannot drop exceeds the limit less the headroom. The events oom and oom_kill
// always do.

package pressure

import (
	"errors"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/freehold-go/freehold/internal/sysmem"
)

const (
	stallWindow = 2 * time.Second
	stallTime   = 100 * time.Millisecond
	// SignalTime is how long a signal holds. It is longer than a window, so that the next signal
	// follows without a gap.
	SignalTime = stallWindow + stallWindow/4

	machinePressure = "proc/pressure/memory"
)

// signals is the state of the system's signals.
type signals struct {
	until [Hard + 1]time.Time // when the signal of each level ends

	stall  stall
	events map[string]int64 // of the cgroup's memory.events, at the last read
	group  string           // the directory that events is from
}

// raise notes a signal of a level.
func (s *signals) raise(l Level, now time.Time) { s.until[l] = now.Add(SignalTime) }

// at returns the highest level whose signal holds at now.
func (s *signals) at(now time.Time) Level {
	for l := Hard; l > Calm; l-- {
		if Ahead(now, s.until[l]) {
			return l
		}
	}
	return Calm
}

// stall detects a growth of stallTime within stallWindow, as a PSI trigger does.
type stall struct {
	began time.Time // of the window; zero before the first read
	total time.Duration
}

// observe reports whether the last window had stallTime of stalls. total is the time of all stalls
// so far.
func (s *stall) observe(now time.Time, total time.Duration) bool {
	age := now.Sub(s.began).Abs()                // the clock of a synctest bubble is years behind
	stalled := min(total-s.total, 2*stallWindow) // so that the product below fits
	// A process at rest reads less than once a window. Then the mean since the last read counts.
	fired := age <= 2*stallWindow && stalled >= stallTime && stalled*stallWindow >= stallTime*age
	if fired || total < s.total || age >= stallWindow {
		s.began, s.total = now, total
	}
	return fired
}

// pressureFile returns the PSI file of the innermost cgroup that has one, or else the machine's, or
// else "". before is the file of the last search. It stays while it cannot be parsed, or while the
// cgroups cannot be read.
func (m Machine) pressureFile(before string) string {
	levels, err := sysmem.Levels(m.Files)
	if err != nil && len(levels) == 0 && before != "" {
		return before
	}
	for _, l := range levels {
		file := path.Join(l.Dir, "memory.pressure")
		if l.Own && l.V2 && (isStall(m.Files, file) || file == before && exists(m.Files, file)) {
			return file
		}
	}
	if isStall(m.Files, machinePressure) {
		return machinePressure
	}
	return ""
}

func isStall(files fs.FS, file string) bool {
	_, ok := stallTotal(files, file)
	return ok
}

func exists(files fs.FS, file string) bool {
	_, err := fs.Stat(files, file)
	return !errors.Is(err, fs.ErrNotExist)
}

// stallTotal returns the time for which some task has waited so far:
//
//	some avg10=0.00 avg60=0.00 avg300=0.00 total=707001525
func stallTotal(files fs.FS, file string) (total time.Duration, ok bool) {
	text, err := fs.ReadFile(files, file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if _, value, found := strings.Cut(line, " total="); found && strings.HasPrefix(line, "some ") {
			us, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return time.Duration(us) * time.Microsecond, err == nil && us >= 0 && us < math.MaxInt64/1000
		}
	}
	return 0, false
}

// observeEvents raises Hard for new events of the limit's cgroup. full says that the memory which
// the kernel cannot drop exceeds the limit less the headroom.
func (s *signals) observeEvents(files fs.FS, l foundLimit, full bool, now time.Time) {
	if l.group == nil || !l.group.V2 {
		return
	}
	events, _ := sysmem.Stat(files, path.Join(l.group.Dir, "memory.events"))
	before, known := s.events, s.group == l.group.Dir
	s.events, s.group = events, l.group.Dir
	if !known {
		return
	}
	for _, name := range []string{"high", "max", "oom", "oom_kill"} {
		was, had := before[name]
		if had && events[name] > was && (full || strings.HasPrefix(name, "oom")) {
			s.raise(Hard, now)
		}
	}
}
