// Boxes: runs of a load under a memory limit, and what became of them.
//
// A control group is the limit that containers have. RLIMIT_AS would limit addresses, which
// off-heap memory and Go's runtime reserve far more of than they use.

package load

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/lab/process"
	"github.com/freehold-go/freehold/lab/run"
)

// How a load keeps to its limit.
const (
	BoxDefault = "default" // by Go's defaults: not at all
	BoxLimit   = "limit"   // GOGC=off and GOMEMLIMIT at nine tenths of the limit, as container guides have it
	BoxBudget  = "budget"
)

// Boxes are the flags of the story budget.
type Boxes struct {
	Limits []cli.Size `default:"512MiB" help:"Memory limits of the story budget."`
	Shares []int      `default:"50,80" help:"Shares of off-heap memory in them, in percent of the limit."`
	Runs   int        `default:"1" help:"How often each of its loads runs."`
	With   []string   `default:"default,limit,budget" enum:"default,limit,budget" help:"How they keep to the limit: by Go's defaults, by GOMEMLIMIT, by a budget."`
	Box    string     `default:"cgroup" enum:"cgroup,none" help:"What limits them: a control group of Linux (cgroup), or nothing (none: peaks are measured, nothing is killed)."`
	GoLive cli.Size   `placeholder:"SIZE" help:"Their live Go heap. Default: a quarter of what the off-heap share leaves, 64MiB at most."`

	Rounds   int           `hidden:"" default:"3"`     // of a load
	Hold     time.Duration `hidden:"" default:"300ms"` // within a round
	Deadline time.Duration `hidden:"" default:"2m"`    // of a run
}

// A BoxRun is one run.
type BoxRun struct {
	Limit cli.Size
	Share int
	Mode  string
	Run   int // from 1
}

// All returns all runs. Runs of one limit and share follow each other.
func (s Boxes) All() (all []BoxRun) {
	for _, limit := range s.Limits {
		for _, share := range s.Shares {
			for run := range s.Runs {
				for _, mode := range s.With {
					all = append(all, BoxRun{limit, share, mode, run + 1})
				}
			}
		}
	}
	return all
}

// Check returns an error for flags that cannot be run.
func (s Boxes) Check() error {
	err := Between("--runs", s.Runs, 1, 10_000)
	for _, limit := range s.Limits {
		err = cmp.Or(err, Between("--limits", limit, 64<<20, PartOfMemory(0.75)), Between("--go-live", s.GoLive, 0, limit-1))
	}
	for _, share := range s.Shares {
		err = cmp.Or(err, Between("--shares", share, 1, 99))
	}
	return err
}

// LiveIn returns the bytes that are live on the Go heap in a run.
func (s Boxes) LiveIn(r BoxRun) cli.Size {
	if s.GoLive > 0 {
		return s.GoLive
	}
	return min((r.Limit-r.offHeap())/4, 64<<20)
}

func (r BoxRun) offHeap() cli.Size { return r.Limit / 100 * cli.Size(r.Share) }

// What becomes of a run.
const (
	BoxFinished = "finished"
	BoxKilled   = "killed"        // for its box's limit
	BoxStruck   = "struck"        // killed by something else, as when the machine has no memory
	BoxFailed   = "out of memory" // an allocation failed
	BoxOver     = "over"          // finished with a peak above the limit, where nothing is killed
	BoxGaveUp   = "gave up"       // at the deadline
)

// A BoxOutcome has the figures of a run.
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
func (s Boxes) Run(ctx context.Context, o *BoxOutcome, args []string, on func(run.Message)) (err error) {
	limited, stop := context.WithTimeout(ctx, s.Deadline)
	defer stop()
	cmd, err := run.Self(limited, args...)
	if err != nil {
		return err
	}
	cmd.Env = s.environment(o.BoxRun)
	var b box
	if s.Box == "cgroup" {
		if b, err = newBox(int64(o.Limit)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.remove()) }()
		b.enter(cmd)
	}
	began := time.Now()
	peak := func() int64 { return 0 }
	var last BoxSample
	failed := run.Child(limited, cmd, func(m run.Message) {
		if len(o.Samples) == 0 {
			peak = process.Watch(cmd.Process.Pid, time.Millisecond)
		}
		if json.Unmarshal(m.Part, &last) == nil {
			o.Samples = append(o.Samples, last)
			on(run.Message{Progress: last.Done})
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
	case b == "" && o.Peak > int64(o.Limit):
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
		percent, goLimit = "off", fmt.Sprint(int64(r.Limit)/10*9)
	case r.Mode == BoxBudget && s.Box == "none": // else the budget finds it
		ours = fmt.Sprint(int64(r.Limit))
	}
	return append(os.Environ(), "GODEBUG=", "GOGC="+percent, "GOMEMLIMIT="+goLimit, "FREEHOLD_MEMORY_LIMIT="+ours)
}
