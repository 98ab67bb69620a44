// Live: gigabytes that stay live while others allocate, and their cost to the collector.

package load

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/internal/sysmem"
	"github.com/freehold-go/freehold/lab/subject"
)

// Live says what every run does.
type Live struct {
	Live     cli.Size      `default:"3GiB" help:"What the data takes on the Go heap with pointers, such as 12GiB; every memory gets the same entries."`
	Headroom cli.Size      `placeholder:"SIZE" help:"With --tuning limit, GOMEMLIMIT is what is live on the Go heap and as much again, at least this. Default: a quarter of --live."`
	Time     time.Duration `default:"10s" help:"How long each run is under load; it goes on until a collection that has begun is done."`
	Workers  int           `default:"${processors}" help:"Goroutines that allocate and compute. Default: GOMAXPROCS. With 0 only the turns make garbage, 64MB a second."`
	Array    cli.Size      `default:"8MiB" help:"What a worker allocates at a time."`
	Reserve  cli.Size      `default:"${reserve}" help:"Memory that must stay available: a run that may take it is refused, one that takes it is stopped. Default: a twentieth of the memory, at least 256MiB."`
}

// UsualReserve returns how many of total bytes of memory a run leaves free.
func UsualReserve(total int64) cli.Size {
	const least = 256 << 20 // more than workers allocate before the next look
	return cli.Size(min(max(total/20, least), total/4))
}

// LeastHeadroom is the least room for garbage under a limit. The usual one keeps collections rare,
// and fresh pages few.
func (l Live) LeastHeadroom() cli.Size {
	if l.Headroom > 0 {
		return l.Headroom
	}
	return max(l.Live/4, l.garbage())
}

// garbage returns the bytes that workers and loop need to get on at all.
func (l Live) garbage() cli.Size { return 2*cli.Size(l.Workers)*l.Array + 32<<20 }

// Check returns an error for a load that cannot be run.
func (l Live) Check() error {
	return cmp.Or(
		Between("--live", l.Live, 1<<20, unbounded),
		Between("--time", l.Time, time.Millisecond, 24*time.Hour),
		Between("--workers", l.Workers, 0, 1<<16),
		Between("--array", l.Array, 8<<10, unbounded>>20),
		Between("--headroom", l.LeastHeadroom(), l.garbage(), 2*unbounded),
	)
}

// Settings of the collector.
const (
	TuningDefault = "default" // GOGC=100
	TuningLimit   = "limit"   // GOGC=off and a memory limit
)

var Tunings = []string{TuningDefault, TuningLimit}

// A LiveRun is one measurement.
type LiveRun struct {
	Shape  subject.Shape
	Store  subject.Store
	Tuning string
}

// Title is "Go heap, default".
func (r LiveRun) Title() string { return r.MemoryTitle() + ", " + r.Tuning }

// MemoryTitle returns what reports call its memory.
func (r LiveRun) MemoryTitle() string {
	if r.Store.Memory == "go" {
		return "Go heap"
	}
	return r.Store.Memory
}

// LiveRuns returns the runs of all that is named. A shape that cannot be kept in a memory has no
// run there.
func LiveRuns(data, in, tuned []string) (runs []LiveRun) {
	for _, s := range subject.Shapes {
		for _, st := range s.Stores {
			for _, t := range Tunings {
				if slices.Contains(data, s.Name) && slices.Contains(in, st.Memory) && slices.Contains(tuned, t) {
					runs = append(runs, LiveRun{s, st, t})
				}
			}
		}
	}
	return runs
}

// Refusal says why a run is not begun, if memory may run out in it.
func (l Live) Refusal(r LiveRun) error {
	data := cli.Size(r.Shape.Entries(int64(l.Live))) * cli.Size(r.Store.Entry)
	need := data + l.garbage()
	switch {
	case r.Tuning == TuningLimit && r.Store.Memory == "freehold":
		need = data + l.LeastHeadroom()
	case r.Tuning == TuningLimit:
		need = data + max(data, l.LeastHeadroom())
	case r.Store.Memory == "go":
		need += 2 * data // as much garbage, and what is allocated while a collection marks
	case r.Store.Memory == "flat":
		need += data
	}
	total, available := sysmem.Memory()
	if total == 0 || need <= cli.Size(available)-l.Reserve {
		return nil
	}
	return fmt.Errorf("%s (%s) may take %v: %s of memory are available, of which %v are to stay so",
		r.Shape.Title, r.Title(), need, cli.Bytes(available), l.Reserve)
}
