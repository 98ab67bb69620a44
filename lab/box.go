// Boxes: runs of a load under a memory limit, and what became of them.
//
//	lab report budget -> child: measures -> boxload: in the box
//
// A control group is the limit that containers have. RLIMIT_AS would limit addresses, which
// off-heap memory and Go's runtime reserve far more of than they use.

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Kinds of boxes.
const (
	boxGroup = "cgroup" // a control group below this process's
	boxNone  = "none"   // no limit but the budget's: nothing is killed
)

// boxSettings are the demo's flags for boxes. Sizes are bytes.
type boxSettings struct {
	Kind     string        `json:"kind"`
	Limits   []int64       `json:"limits"`
	Shares   []int         `json:"shares"` // of off-heap memory, in percent of the limit
	Modes    []string      `json:"modes"`
	Runs     int           `json:"runs"`
	Live     int64         `json:"live"` // on the Go heap; 0 for a quarter of what off-heap memory leaves
	Rounds   int           `json:"rounds"`
	Hold     time.Duration `json:"hold"`
	Deadline time.Duration `json:"deadline"` // of a run
}

// A boxRun is one run.
type boxRun struct {
	Limit int64
	Share int
	Mode  string
	Run   int // from 1
}

// runs returns all runs: those of one limit and share are neighbours.
func (s boxSettings) runs() (all []boxRun) {
	for _, limit := range s.Limits {
		for _, share := range s.Shares {
			for _, mode := range s.Modes {
				for run := range s.Runs {
					all = append(all, boxRun{limit, share, mode, run + 1})
				}
			}
		}
	}
	return all
}

// load returns the load of a run.
func (s boxSettings) load(r boxRun) boxLoad {
	off := r.Limit / 100 * int64(r.Share)
	live := s.Live
	if live == 0 {
		live = min((r.Limit-off)/4, 64<<20)
	}
	return boxLoad{Mode: r.Mode, OffHeap: off, Live: live, Rounds: s.Rounds, Hold: s.Hold}
}

// What becomes of a run.
const (
	boxFinished = "finished"
	boxKilled   = "killed"        // for its box's limit
	boxStruck   = "struck"        // killed by something else, as when the machine has no memory
	boxFailed   = "out of memory" // an allocation failed
	boxOver     = "over"          // finished with a peak above the limit, where nothing is killed
	boxGaveUp   = "gave up"       // at the deadline
)

// A boxOutcome is what a run measured.
type boxOutcome struct {
	Result  string      `json:"result"`
	Peak    int64       `json:"peak"` // resident, without pages of files
	Seconds float64     `json:"seconds"`
	Samples []boxSample `json:"samples"`
}

// last returns the last sample.
func (o *boxOutcome) last() boxSample {
	if len(o.Samples) == 0 {
		return boxSample{}
	}
	return o.Samples[len(o.Samples)-1]
}

// measure runs a load in a box, or in none if b is nil, and watches it.
func (s boxSettings) measure(ctx context.Context, r boxRun, b *box, report func(float64)) (*boxOutcome, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program, to run it in a box: %w", err)
	}
	load, err := json.Marshal(s.load(r))
	if err != nil {
		return nil, err
	}
	limited, stop := context.WithTimeout(ctx, s.Deadline)
	defer stop()
	cmd := exec.CommandContext(limited, exe, "boxload", string(load))
	dir := ""
	if b != nil {
		dir = b.dir
	}
	cmd.Env = boxEnvironment(os.Environ(), r.Mode, r.Limit, dir)
	cmd.WaitDelay = inOrder
	if _, err := cmd.StdinPipe(); err != nil { // the load's lifeline
		return nil, err
	}
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a load: %w", err)
	}
	peak := watchPeak(cmd.Process.Pid)
	o := &boxOutcome{}
	for in := json.NewDecoder(bufio.NewReader(pipe)); ; {
		var x boxSample
		if in.Decode(&x) != nil {
			break
		}
		o.Samples = append(o.Samples, x)
		report(x.Done)
	}
	err = cmd.Wait()
	o.Peak, o.Seconds = peak(), time.Since(began).Seconds()
	last := o.last()
	o.Samples = thin(o.Samples, 400)
	var exit *exec.ExitError
	killed := errors.As(err, &exit) && exit.String() == "signal: killed"
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		o.Result = boxGaveUp
	case killed || b.kills() > 0:
		o.Result = b.killer()
	case err != nil:
		return nil, fmt.Errorf("the load of %s: %w: %s", r.name(), err, lastLines(complaint.String()))
	case last.Failed > 0:
		o.Result = boxFailed
	case b == nil && o.Peak > r.Limit:
		o.Result = boxOver
	default:
		o.Result = boxFinished
	}
	return o, nil
}

// killer returns the result of a load in b, or in no box, that was killed.
func (b *box) killer() string {
	if b.kills() > 0 {
		return boxKilled
	}
	return boxStruck
}

// name is how a child is told of the run.
func (r boxRun) name() string { return fmt.Sprintf("%d,%d,%s,%d", r.Limit, r.Share, r.Mode, r.Run) }

// boxRunNamed returns the run of a name.
func boxRunNamed(name string) (r boxRun, err error) {
	fields := strings.Split(name, ",")
	if len(fields) != 4 {
		return r, cli.Usagef("%q names no run", name)
	}
	var errs [3]error
	r.Limit, errs[0] = strconv.ParseInt(fields[0], 10, 64)
	r.Share, errs[1] = strconv.Atoi(fields[1])
	r.Run, errs[2] = strconv.Atoi(fields[3])
	r.Mode = fields[2]
	if err := errors.Join(errs[:]...); err != nil {
		return r, cli.Usagef("%q names no run: %w", name, err)
	}
	return r, nil
}

// watchPeak looks at the resident memory of a process each millisecond until the largest is
// asked for.
func watchPeak(pid int) (peak func() int64) {
	file := fmt.Sprintf("/proc/%d/status", pid)
	quit, done := make(chan struct{}), make(chan int64)
	go func() {
		var p residentPeak
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			if text, err := os.ReadFile(file); err == nil {
				p.look(string(text))
			}
			select {
			case <-quit:
				done <- p.bytes()
				return
			case <-tick.C:
			}
		}
	}()
	return func() int64 { close(quit); return <-done }
}

// residentPeak finds the largest resident memory of a process without pages of files: the most
// that a look saw, or the most that the kernel saw less the most of the files' part. That drops
// when memory is short.
type residentPeak struct{ now, all, files int64 }

// look takes the process's status.
func (p *residentPeak) look(status string) {
	var now int64
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "RssAnon", "RssShmem":
			now += kib << 10
		case "VmHWM":
			p.all = max(p.all, kib<<10)
		case "RssFile":
			p.files = max(p.files, kib<<10)
		}
	}
	p.now = max(p.now, now)
}

func (p *residentPeak) bytes() int64 { return max(p.now, p.all-p.files) }
