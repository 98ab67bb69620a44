// Idle: did other programs use the machine while we measured?
//
// /proc/stat has the processors' busy time, /proc/self/stat our own and that
// of the programs we ran and waited for. The difference is everybody else's.
// Both count in ticks of 10 ms, so a short sample can only show a large
// disturbance; the whole run is judged by the same sum over its length.

package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	tick      = 10 * time.Millisecond // USER_HZ is 100 on every Linux
	tickSlack = 3 * tick              // rounding of the counters below
)

// busy is processor time used up to now.
type busy struct {
	all    time.Duration // by everyone
	stolen time.Duration // by the host of a virtual machine
	own    time.Duration // by us and our finished children
	at     time.Time
}

// readBusy fails where there is no /proc.
func readBusy() (busy, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return busy{}, err
	}
	self, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return busy{}, err
	}
	b := busy{at: time.Now()}
	if b.all, b.stolen, err = parseStat(string(stat)); err != nil {
		return b, err
	}
	b.own, err = parseSelf(string(self))
	return b, err
}

// parseStat reads the first line of /proc/stat:
//
//	cpu  user nice system idle iowait irq softirq steal guest guest_nice
//
// Guests are in user and nice already.
func parseStat(text string) (all, stolen time.Duration, err error) {
	line, _, _ := strings.Cut(text, "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return 0, 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	for i, column := range f[1:9] {
		n, err := strconv.ParseInt(column, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/stat begins with %q", line)
		}
		switch i {
		case 3, 4: // idle, iowait
		case 7:
			stolen = time.Duration(n) * tick
		default:
			all += time.Duration(n) * tick
		}
	}
	return all, stolen, nil
}

// parseSelf adds up utime, stime, cutime and cstime of /proc/self/stat: columns
// 14 to 17, counted after a command name that may hold spaces and brackets.
func parseSelf(text string) (own time.Duration, err error) {
	f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(f) < 15 {
		return 0, fmt.Errorf("/proc/self/stat reads %q", text)
	}
	for _, column := range f[11:15] {
		n, err := strconv.ParseInt(column, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/self/stat reads %q", text)
		}
		own += time.Duration(n) * tick
	}
	return own, nil
}

// A disturbance is what others used of the processors in some stretch of time.
// Rounding can make it negative, so stretches are added up before judging.
type disturbance struct{ used, wall time.Duration }

func between(from, to busy) disturbance {
	return disturbance{
		used: (to.all - from.all) + (to.stolen - from.stolen) - (to.own - from.own),
		wall: to.at.Sub(from.at),
	}
}

// share is in processors: 0.03 is three percent of one.
func (d disturbance) share() float64 {
	if d.wall <= 0 {
		return 0
	}
	return max(0, float64(d.used)/float64(d.wall))
}

// noisy reports whether it is more than the limit, beyond doubt.
func (d disturbance) noisy(limit float64) bool {
	return d.wall > 0 && float64(d.used) > limit*float64(d.wall)+float64(tickSlack)
}

// awaitQuiet waits until others leave the machine alone, but not beyond the
// deadline.
func awaitQuiet(limit float64, deadline time.Time) {
	for time.Now().Before(deadline) {
		from, err := readBusy()
		if err != nil {
			return
		}
		time.Sleep(min(500*time.Millisecond, time.Until(deadline)))
		to, err := readBusy()
		if err != nil {
			return
		}
		// Half a second shows one tick as two percent: no slack here.
		if between(from, to).share() <= max(limit, 0.03) {
			return
		}
	}
}
