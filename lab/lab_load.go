package main

import (
	"fmt"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"math"
	"runtime"
	"time"
)

// A labLoad says what every run of gclab does. Sizes are in bytes.
type labLoad struct {
	Live     int64         `json:"live"`     // what the data takes on the Go heap with pointers
	Headroom int64         `json:"headroom"` // what a limit leaves to garbage at least
	Reserve  int64         `json:"reserve"`  // memory of the machine that must stay available
	Time     time.Duration `json:"time"`     // for which the load runs
	Workers  int           `json:"workers"`
	Array    int64         `json:"array"` // that a worker allocates at a time
}

// newLabLoad returns the usual load.
func newLabLoad(live int64, d time.Duration) labLoad {
	total, _ := machineMemory()
	l := labLoad{Live: live, Time: d, Workers: runtime.GOMAXPROCS(0), Array: 8 << 20, Reserve: usualReserve(total)}
	l.Headroom = l.usualHeadroom()
	return l
}

// usualReserve is what a run leaves of total bytes of memory.
func usualReserve(total int64) int64 {
	const least = 256 << 20 // more than workers allocate before the next look
	return min(max(total/20, least), total/4)
}

// usualHeadroom keeps collections rare, and fresh pages few.
func (l labLoad) usualHeadroom() int64 { return max(l.Live/4, l.garbage()) }

// garbage returns the bytes that workers and loop need to get on at all.
func (l labLoad) garbage() int64 { return 2*int64(l.Workers)*l.Array + 32<<20 }

// check says what is wrong with the load.
func (l labLoad) check() error {
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

// refusal says why a run is not begun, if memory may run out in it.
func (l labLoad) refusal(r labRun) error {
	data := int64(r.shape.entries(l.Live)) * r.store.entry
	need := data + l.garbage()
	switch {
	case r.tuning == tuningLimit && r.store.memory == "freehold":
		need = data + l.Headroom
	case r.tuning == tuningLimit:
		need = data + max(data, l.Headroom)
	case r.store.memory == "go":
		need += 2 * data // as much garbage, and what is allocated while a collection marks
	case r.store.memory == "flat":
		need += data
	}
	total, available := machineMemory()
	if total == 0 || need <= available-l.Reserve {
		return nil
	}
	return fmt.Errorf("%s (%s) may take %s: %s of memory are available, of which %s are to stay so",
		r.shape.title, r.title(), cli.Bytes(need), cli.Bytes(available), cli.Bytes(l.Reserve))
}
