// Boxes: runs of a load under a memory limit, and what became of them.
//
// A control group is the limit that containers have. RLIMIT_AS would limit addresses, which
// off-heap memory and Go's runtime reserve far more of than they use.

package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/lab/process"
	"github.com/freehold-go/freehold/lab/run"
	"github.com/freehold-go/freehold/lab/wire"
)

// How a load keeps to its limit.
const (
	BoxDefault = "Go's defaults" // not at all
	BoxLimit   = "GOMEMLIMIT"    // GOGC=off and nine tenths of the limit, as container guides have it
	BoxBudget  = "budget"
)

// BoxModes are all of them.
var BoxModes = []string{BoxDefault, BoxLimit, BoxBudget}

// Boxes say what is run. Sizes are bytes.
type Boxes struct {
	Free     bool          `json:"-"` // no limit but the budget's: nothing is killed
	Limits   []int64       `json:"-"`
	Shares   []int         `json:"-"` // of off-heap memory, in percent of the limit
	Modes    []string      `json:"-"`
	Runs     int           `json:"-"`
	Deadline time.Duration `json:"-"`    // of a run
	Live     int64         `json:"live"` // on the Go heap; 0 for a quarter of what off-heap memory leaves
	Rounds   int           `json:"rounds"`
	Hold     time.Duration `json:"hold"`
}

// A BoxRun is one run.
type BoxRun struct {
	Limit int64
	Share int
	Mode  string
	Run   int // from 1
}

// All returns all runs: those of one limit and share are neighbours.
func (s Boxes) All() (all []BoxRun) {
	for _, limit := range s.Limits {
		for _, share := range s.Shares {
			for run := range s.Runs {
				for _, mode := range s.Modes {
					all = append(all, BoxRun{limit, share, mode, run + 1})
				}
			}
		}
	}
	return all
}

// Check says what is wrong with them, before anything runs.
func (s Boxes) Check() error {
	total, _ := budget.Memory()
	for _, limit := range s.Limits {
		switch {
		case limit < 64<<20:
			return cli.Usagef("--limits %s: at least 64 MiB are needed", cli.Bytes(limit))
		case total > 0 && limit > total/4*3:
			return cli.Usagef("--limits %s: more than three quarters of the %s of memory", cli.Bytes(limit), cli.Bytes(total))
		case s.Live >= limit:
			return cli.Usagef("--go-live %s: it must be below the limit of %s", cli.Bytes(s.Live), cli.Bytes(limit))
		}
	}
	for _, share := range s.Shares {
		if share < 1 || share > 99 {
			return cli.Usagef("--shares %d: a share is 1 to 99 percent", share)
		}
	}
	if s.Runs < 1 {
		return cli.Usagef("--runs %d: at least one is needed", s.Runs)
	}
	return nil
}

// GoLive returns what is live on the Go heap in a run.
func (s Boxes) GoLive(r BoxRun) int64 {
	if s.Live > 0 {
		return s.Live
	}
	return min((r.Limit-r.offHeap())/4, 64<<20)
}

func (r BoxRun) offHeap() int64 { return r.Limit / 100 * int64(r.Share) }

// What becomes of a run.
const (
	BoxFinished = "finished"
	BoxKilled   = "killed"        // for its box's limit
	BoxStruck   = "struck"        // killed by something else, as when the machine has no memory
	BoxFailed   = "out of memory" // an allocation failed
	BoxOver     = "over"          // finished with a peak above the limit, where nothing is killed
	BoxGaveUp   = "gave up"       // at the deadline
)

// A BoxOutcome is what a run measured.
type BoxOutcome struct {
	BoxRun
	Result    string  `json:"result" show:"result"`
	Peak      int64   `json:"peak" show:"peak" unit:"B"` // resident, without pages of files
	OfLimit   float64 `json:"peak_of_limit" show:"peak, % of the limit" unit:"%"`
	Cycles    int64   `json:"collections" show:"collections" unit:"n"`
	Collector float64 `json:"collector_cpu" show:"collector, % CPU" unit:"%"`
	Done      float64 `json:"done" show:"done, %" unit:"%"`
	Seconds   float64 `json:"seconds" show:"time, s"`
	Nodes     float64 `json:"nodes_m_per_s" show:"nodes, M/s"` // millions of nodes replaced a second

	Samples []BoxSample
}

// Run runs a load in its box, and watches it. args are this program's for the load.
func (s Boxes) Run(ctx context.Context, o *BoxOutcome, args []string, on func(wire.Message)) (err error) {
	limited, stop := context.WithTimeout(ctx, s.Deadline)
	defer stop()
	cmd, err := run.Self(limited, args...)
	if err != nil {
		return err
	}
	cmd.Env = s.environment(o.BoxRun)
	var b box
	if !s.Free {
		if b, err = newBox(o.Limit); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.remove()) }()
		b.enter(cmd)
	}
	began := time.Now()
	peak := func() int64 { return 0 }
	var last BoxSample
	failed := run.Child(limited, cmd, func(m wire.Message) {
		if len(o.Samples) == 0 {
			peak = process.Watch(cmd.Process.Pid, time.Millisecond)
		}
		if json.Unmarshal(m.Part, &last) == nil {
			o.Samples = append(o.Samples, last)
			on(wire.Message{Progress: last.Done})
		}
	}, &last)
	o.Seconds, o.Peak, o.Samples = time.Since(began).Seconds(), peak(), append(o.Samples, last)
	o.OfLimit = float64(o.Peak) / float64(o.Limit)
	o.Cycles, o.Collector, o.Done, o.Nodes = last.Cycles, last.Collector, last.Done, float64(last.Nodes)/max(last.Seconds, 1e-3)/1e6
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		o.Result = BoxGaveUp
	case b != "" && b.kills() > 0:
		o.Result = BoxKilled
	case run.Killed(failed):
		o.Result = BoxStruck
	case failed != nil:
		return fmt.Errorf("the load of %+v: %w", o.BoxRun, failed)
	case last.Failed:
		o.Result = BoxFailed
	case s.Free && o.Peak > o.Limit:
		o.Result = BoxOver
	default:
		o.Result = BoxFinished
	}
	return nil
}

// environment returns the environment of a load: this one's, but what limits memory is as its
// mode has it.
func (s Boxes) environment(r BoxRun) []string {
	percent, goLimit, ours := "", "", ""
	switch {
	case r.Mode == BoxLimit:
		percent, goLimit = "off", fmt.Sprint(r.Limit/10*9)
	case r.Mode == BoxBudget && s.Free: // else the budget finds it
		ours = fmt.Sprint(r.Limit)
	}
	return append(os.Environ(), "GODEBUG=", "GOGC="+percent, "GOMEMLIMIT="+goLimit, budget.Environment+"="+ours)
}
