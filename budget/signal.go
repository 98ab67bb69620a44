// Signals: what the system says of memory that is short.
//
// PSI (pressure stall information) says for how long tasks waited for memory: those of the
// cgroup, or of the machine. Looks find when that passes a part of a window. The kernel has triggers
// for that, but without CAP_SYS_RESOURCE it looks each 2 s itself, and who waits for one blocks a thread.
//
// The events of a cgroup count how often it was at its limits. Page cache alone brings it
// there, in any container that reads files. So they are a signal only while the rest is at the limit too.

package budget

import (
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/freehold-go/freehold/internal/sysmem"
)

const (
	stallWindow = 2 * time.Second
	stallTime   = 100 * time.Millisecond
	// A signal holds until the next may have come.
	signalTime = stallWindow + stallWindow/4

	machinePressure = "proc/pressure/memory"
)

// signals is the state of the system's signals.
type signals struct {
	until [Hard + 1]time.Time // of each level; then it is over

	stall  stall
	events map[string]int64 // of the cgroup's memory.events, at the last look
	group  string           // whose events they are
}

// raise notes a signal.
func (s *signals) raise(l Level, now time.Time) { s.until[l] = now.Add(signalTime) }

// at returns the level of the signals at a time.
func (s *signals) at(now time.Time) Level {
	for l := Hard; l > Calm; l-- {
		if ahead(now, s.until[l]) {
			return l
		}
	}
	return Calm
}

// stall finds stallTime within stallWindow, as a trigger of PSI does.
type stall struct {
	began time.Time // of the window; long ago before the first look
	total time.Duration
}

// observe takes the total of stalls so far, and reports whether that is found.
func (s *stall) observe(now time.Time, total time.Duration) bool {
	age := now.Sub(s.began).Abs() // a bubble's clock is years behind
	stalled := min(total-s.total, 2*stallWindow)
	// A look of a process at rest may be later than the window's end. Then the mean counts.
	fired := age <= 2*stallWindow && stalled >= stallTime && stalled*stallWindow >= stallTime*age
	if fired || total < s.total || age >= stallWindow {
		s.began, s.total = now, total
	}
	return fired
}

// pressureFile returns the file of PSI that is closest to the process, or "" if there is
// none. That of before stays while it cannot be understood, or the cgroup is not known.
func (m machine) pressureFile(before string) string {
	levels, err := sysmem.Levels(m.files)
	if err != nil && len(levels) == 0 && before != "" {
		return before
	}
	for _, l := range levels {
		file := path.Join(l.Dir, "memory.pressure")
		if l.Own && l.V2 && (isStall(m.files, file) || file == before && exists(m.files, file)) {
			return file
		}
	}
	if isStall(m.files, machinePressure) {
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

// stallTotal returns for how long some task has waited so far:
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
			return time.Duration(us) * time.Microsecond, err == nil && us >= 0 && us < sysmem.NoLimit/1000
		}
	}
	return 0, false
}

// observeEvents raises the level for what is new in the events of the limit's cgroup. Full
// says that what the kernel cannot drop is at the limit.
func (s *signals) observeEvents(files fs.FS, l limit, full bool, now time.Time) {
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
