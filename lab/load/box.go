// Boxes: runs of a load under a memory limit, and what became of them.
//
//	lab report budget -> child: measures -> boxload: in the box
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

// Kinds of boxes.
const (
	BoxGroup = "cgroup" // a control group below this process's
	BoxNone  = "none"   // no limit but the budget's: nothing is killed
)

// BoxModes are all ways to keep to a limit.
var BoxModes = []string{BoxDefault, BoxLimit, BoxBudget}

// Boxes say what is run. Sizes are bytes.
type Boxes struct {
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
			for _, mode := range s.Modes {
				for run := range s.Runs {
					all = append(all, BoxRun{limit, share, mode, run + 1})
				}
			}
		}
	}
	return all
}

// Check says what is wrong with them, before anything runs.
func (s Boxes) Check() error {
	const mostRuns = 10_000 // of each load
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
	if s.Runs < 1 || s.Runs > mostRuns {
		return cli.Usagef("--runs %d: 1 to %d are possible", s.Runs, mostRuns)
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
	Result    string  `json:"result" show:"result"`
	Peak      int64   `json:"peak" show:"peak" unit:"B"` // resident, without pages of files
	OfLimit   float64 `json:"peak_of_limit" show:"of limit %" unit:"%"`
	Cycles    int64   `json:"collections" show:"collections" unit:"n"`
	Collector float64 `json:"collector_cpu" show:"collector, % CPU" unit:"%"`
	Failed    int     `json:"failed" show:"failed allocs" unit:"n"`
	Done      float64 `json:"done" show:"done, %" unit:"%"`
	Seconds   float64 `json:"seconds" show:"s"`
	Nodes     float64 `json:"nodes_m_per_s" show:"nodes, M/s"` // millions of nodes replaced a second

	Samples []BoxSample `json:"samples"`
}

// Run runs a load in its box, and watches it.
func (s Boxes) Run(ctx context.Context, r BoxRun, tell wire.Writer) (*BoxOutcome, error) {
	if s.Kind == BoxNone {
		return s.measure(ctx, r, nil, tell)
	}
	b, err := newBox(r.Limit)
	if err != nil {
		return nil, err
	}
	o, err := s.measure(ctx, r, b, tell)
	return o, errors.Join(err, b.remove())
}

// measure runs a load in a box, or in none if b is nil, and watches it.
func (s Boxes) measure(ctx context.Context, r BoxRun, b *box, tell wire.Writer) (*BoxOutcome, error) {
	text, err := json.Marshal(boxLoad{Mode: r.Mode, OffHeap: r.offHeap(), Live: s.GoLive(r), Rounds: s.Rounds, Hold: s.Hold})
	if err != nil {
		return nil, err
	}
	limited, stop := context.WithTimeout(ctx, s.Deadline)
	defer stop()
	cmd, err := run.Self(limited, "boxload", string(text))
	if err != nil {
		return nil, err
	}
	dir := ""
	if b != nil {
		dir = b.dir
	}
	cmd.WaitDelay = time.Second // it has made nothing that it would have to remove
	cmd.Env = boxEnvironment(os.Environ(), r.Mode, r.Limit, dir)
	began := time.Now()
	var peak func() int64
	o := &BoxOutcome{}
	var last BoxSample
	err = run.Child(limited, cmd, func(m wire.Message) {
		if peak == nil {
			peak = process.Watch(cmd.Process.Pid, time.Millisecond)
		}
		if json.Unmarshal(m.Part, &last) == nil {
			o.Samples = append(o.Samples, last)
			tell.Progress(last.Done, "")
		}
	}, &last)
	o.Seconds = time.Since(began).Seconds()
	if peak != nil {
		o.Peak = peak()
	}
	o.OfLimit = float64(o.Peak) / float64(r.Limit)
	o.Cycles, o.Collector, o.Failed, o.Done = last.Cycles, last.Collector, last.Failed, last.Done
	if last.Seconds > 0 {
		o.Nodes = float64(last.Nodes) / last.Seconds / 1e6
	}
	o.Samples = Thin(append(o.Samples, last), 400)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		o.Result = BoxGaveUp
	case run.Killed(err) || b.kills() > 0:
		o.Result = b.killer()
	case err != nil:
		return nil, fmt.Errorf("the load of %+v: %w", r, err)
	case last.Failed > 0:
		o.Result = BoxFailed
	case b == nil && o.Peak > r.Limit:
		o.Result = BoxOver
	default:
		o.Result = BoxFinished
	}
	return o, nil
}

// killer returns the result of a load in b, or in no box, that was killed.
func (b *box) killer() string {
	if b.kills() > 0 {
		return BoxKilled
	}
	return BoxStruck
}

// Thin keeps about n samples, evenly, and both ends.
func Thin[S any](samples []S, n int) []S {
	if len(samples) <= n {
		return samples
	}
	kept := make([]S, n)
	for i := range kept {
		kept[i] = samples[i*(len(samples)-1)/(n-1)]
	}
	return kept
}
