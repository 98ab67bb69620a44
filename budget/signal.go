// Signals: what the system says of memory that is short.
//
// PSI (pressure stall information) says for how long tasks waited for memory: those of the
// cgroup, or of the machine. The kernel tells when that passes a part of a window, to those
// who may set a trigger. The others read the file and compute the same. A trigger stays with its
// cgroup, so a process that was moved gets another one.
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
)

const (
	// The kernel's rule: without CAP_SYS_RESOURCE a window is a multiple of 2 s.
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
		if !now.After(s.until[l]) {
			return l
		}
	}
	return Calm
}

// stall finds by polling what a PSI trigger finds: stallTime within stallWindow.
type stall struct {
	began time.Time // of the window; long ago before the first look
	total time.Duration
}

// observe takes the total of stalls so far, and reports whether a trigger would have fired.
func (s *stall) observe(now time.Time, total time.Duration) bool {
	fired := now.Sub(s.began) <= stallWindow && total-s.total >= stallTime
	if fired || total < s.total || now.Sub(s.began) >= stallWindow {
		s.began, s.total = now, total
	}
	return fired
}

// pressureFile returns the file of PSI that is closest to the process, or "" if there is
// none. That of before stays while it cannot be understood, or the cgroup is not known.
func (m machine) pressureFile(before string) string {
	levels, err := groupLevels(m.files)
	if err != nil && len(levels) == 0 && before != "" {
		return before
	}
	for _, l := range levels {
		file := path.Join(l.dir, "memory.pressure")
		if l.own && l.v2 && (isStall(m.files, file) || file == before && exists(m.files, file)) {
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
		if !strings.HasPrefix(line, "some ") {
			continue
		}
		_, value, _ := strings.Cut(line, " total=")
		us, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		return time.Duration(us) * time.Microsecond, err == nil && us >= 0 && us < noLimit/1000
	}
	return 0, false
}

// observeEvents raises the level for what is new in the events of the limit's cgroup. Full
// says that what the kernel cannot drop is at the limit.
func (s *signals) observeEvents(files fs.FS, l limit, full bool, now time.Time) {
	if l.group == nil || !l.group.v2 {
		return
	}
	events, _ := statOf(files, path.Join(l.group.dir, "memory.events"))
	before, known := s.events, s.group == l.group.dir
	s.events, s.group = events, l.group.dir
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
