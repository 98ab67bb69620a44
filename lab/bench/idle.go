// Idle: did other programs use the machine while we measured?
//
// The system knows the processors' busy time. We know the time of this process and of the programs
// that it has run. The difference is other programs'. Busy time counts in ticks of 10 ms, so a
// short sample can only show a large disturbance; the whole run is judged by the same sum over
// its length.

package bench

import (
	"errors"
	"os/exec"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"

	"github.com/freehold-go/freehold/lab/process"
)

// tickSlack is the rounding of the counters below.
const tickSlack = 30 * time.Millisecond

// busy is processor time used up to now.
type busy struct {
	all time.Duration // by everyone, and by the host of a virtual machine
	own time.Duration // by this process
	at  time.Time
}

func readBusy() (busy, error) {
	times, err := cpu.Times(false)
	if err == nil && len(times) == 0 {
		err = errors.New("the system tells no processor time")
	}
	if err != nil {
		return busy{}, err
	}
	t := times[0] // whose guests are in User already
	used := t.User + t.Nice + t.System + t.Irq + t.Softirq + t.Steal
	return busy{time.Duration(used * float64(time.Second)), time.Duration(process.CPUTime()), time.Now()}, nil
}

// A disturbance is the processor time of other programs in a stretch of time.
// Rounding can make it negative, so stretches are added up before judging.
type disturbance struct{ used, wall time.Duration }

// between returns the processor time of other programs. cmd is a program of ours that has ended
// meanwhile, or nil.
func between(from, to busy, cmd *exec.Cmd) disturbance {
	own := to.own - from.own
	if cmd != nil && cmd.ProcessState != nil {
		own += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return disturbance{used: to.all - from.all - own, wall: to.at.Sub(from.at)}
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
