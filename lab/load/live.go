// Live: gigabytes that stay live while others allocate, and what that costs the collector.

package load

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/lab/subject"
)

// Live says what every run does. Sizes are in bytes.
type Live struct {
	Live     int64         `json:"live"`     // what the data takes on the Go heap with pointers
	Headroom int64         `json:"headroom"` // what a limit leaves to garbage at least
	Reserve  int64         `json:"reserve"`  // memory of the machine that must stay available
	Time     time.Duration `json:"time"`     // for which the load runs
	Workers  int           `json:"workers"`
	Array    int64         `json:"array"` // that a worker allocates at a time
}

// NewLive returns the usual load.
func NewLive(live int64, d time.Duration) Live {
	total, _ := budget.Memory()
	l := Live{Live: live, Time: d, Workers: runtime.GOMAXPROCS(0), Array: 8 << 20, Reserve: UsualReserve(total)}
	l.Headroom = l.UsualHeadroom()
	return l
}

// UsualReserve is what a run leaves of total bytes of memory.
func UsualReserve(total int64) int64 {
	const least = 256 << 20 // more than workers allocate before the next look
	return min(max(total/20, least), total/4)
}

// UsualHeadroom keeps collections rare, and fresh pages few.
func (l Live) UsualHeadroom() int64 { return max(l.Live/4, l.garbage()) }

// garbage returns the bytes that workers and loop need to get on at all.
func (l Live) garbage() int64 { return 2*int64(l.Workers)*l.Array + 32<<20 }

// Check says what is wrong with the load.
func (l Live) Check() error {
	const leastLive, leastArray = 1 << 20, 8 << 10
	switch {
	case l.Live < leastLive:
		return cli.Usagef("--live %s is too little: at least %s are needed", cli.Bytes(l.Live), cli.Bytes(leastLive))
	case l.Live > math.MaxInt/4:
		return cli.Usagef("--live %s is more than this system can address", cli.Bytes(l.Live))
	case l.Time <= 0:
		return cli.Usagef("--time %v: it must be longer than 0", l.Time)
	case l.Workers < 1:
		return cli.Usagef("--workers %d: at least one is needed", l.Workers)
	case l.Array < leastArray:
		return cli.Usagef("--array %s is too little: at least %s are needed", cli.Bytes(l.Array), cli.Bytes(leastArray))
	case l.Array > math.MaxInt/4/int64(l.Workers):
		return cli.Usagef("--array %s is more than this system can address", cli.Bytes(l.Array))
	case l.Headroom < l.garbage():
		return cli.Usagef("--headroom %s is too little: %s with arrays of %s need %s", cli.Bytes(l.Headroom), cli.Plural(l.Workers, "worker"), cli.Bytes(l.Array), cli.Bytes(l.garbage()))
	}
	return nil
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
	data := int64(r.Shape.Entries(l.Live)) * r.Store.Entry
	need := data + l.garbage()
	switch {
	case r.Tuning == TuningLimit && r.Store.Memory == "freehold":
		need = data + l.Headroom
	case r.Tuning == TuningLimit:
		need = data + max(data, l.Headroom)
	case r.Store.Memory == "go":
		need += 2 * data // as much garbage, and what is allocated while a collection marks
	case r.Store.Memory == "flat":
		need += data
	}
	total, available := budget.Memory()
	if total == 0 || need <= available-l.Reserve {
		return nil
	}
	return fmt.Errorf("%s (%s) may take %s: %s of memory are available, of which %s are to stay so",
		r.Shape.Title, r.Title(), cli.Bytes(need), cli.Bytes(available), cli.Bytes(l.Reserve))
}
