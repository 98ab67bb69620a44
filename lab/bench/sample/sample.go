// Package sample is what the programs of bench have in common: what they are asked for by flags,
// and the sample that they tell of.
package sample

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/freehold-go/freehold/lab/process"
	"github.com/freehold-go/freehold/lab/wire"
)

// Params say what to run. Sizes are in bytes, and uniform in Min..Max.
type Params struct {
	Load      string // version only tells the version
	Min, Max  int
	Threads   int
	Slots     int           // live blocks per thread, or in all
	Warm, Run time.Duration // per sample
	Ops       int           // run exactly this many instead of for a time; 0 means for a time
	Read      bool          // handover: the consumer looks at the blocks
	Top       int           // the last size of what grows

	Entries  int    // in a container
	Records  int    // to sort or to append
	Kind     string // of lines
	Bytes    int64  // of lines
	Memory   int64  // that a sort of lines may use
	Parallel int    // processors to sort with
	Dir      string // for lines and temporary files
	Command  string // the freehold command
	Peer     string // who sorts
}

// A Sample is what one run of a load found. Fields that do not apply are zero.
type Sample struct {
	NS        float64 `json:"ns"`        // per operation, wall time, the mean over threads
	CPU       float64 `json:"cpu_ns"`    // per operation, processor time of all threads
	Ops       int     `json:"ops"`       // operations measured
	GCs       int64   `json:"gcs"`       // Go collections meanwhile
	Sum       uint64  `json:"sum"`       // of what the random numbers chose or what was found; equal for all peers
	Requested uint64  `json:"requested"` // bytes in live blocks
	Resident  uint64  `json:"resident"`  // bytes the process grew by
	Peak      uint64  `json:"peak"`      // bytes the process had, at most
	Mallocs   float64 `json:"mallocs"`   // Go heap allocations per operation
	Version   string  `json:"version"`
	Skip      string  `json:"-"` // why this peer cannot do the load
}

// measured is what the whole process did during the measured part: processor
// time in ns and the Go collections, which the wall time of one goroutine hides.
var measured struct {
	cpu int64
	gcs int64
}

// Begin and End bracket the measured part.
func Begin() {
	measured.gcs = -process.Collections()
	measured.cpu = -process.CPUTime()
}

func End() {
	measured.cpu += process.CPUTime()
	measured.gcs += process.Collections()
}

// Fail ends the sample: an allocator that runs out mid-load has no figure.
func Fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Main runs the load that the flags name, and tells its sample.
func Main(version func(*Params) (string, error), load func(*Params) (Sample, error)) {
	var p Params
	flag.StringVar(&p.Load, "load", "version", "what to run")
	flag.IntVar(&p.Min, "min", 64, "smallest size in bytes")
	flag.IntVar(&p.Max, "max", 0, "largest size in bytes; 0 means min")
	flag.IntVar(&p.Threads, "threads", 1, "goroutines at once")
	flag.IntVar(&p.Slots, "slots", 10_000, "live blocks")
	warm := flag.Int("warm", 20, "warm-up in ms")
	run := flag.Int("run", 60, "measurement in ms")
	flag.IntVar(&p.Ops, "ops", 0, "run exactly this many operations")
	read := flag.Int("read", 0, "1: the consumer reads each block")
	flag.IntVar(&p.Top, "top", 1<<30, "last size in bytes of what grows")
	flag.IntVar(&p.Entries, "entries", 1_000_000, "entries in the container")
	flag.IntVar(&p.Records, "records", 10_000_000, "records to sort or to append")
	flag.StringVar(&p.Kind, "kind", "mixed", "kind of lines")
	flag.Int64Var(&p.Bytes, "bytes", 1_000_000_000, "bytes of lines")
	flag.Int64Var(&p.Memory, "memory", 200<<20, "bytes of memory to sort lines with")
	flag.IntVar(&p.Parallel, "parallel", runtime.GOMAXPROCS(0), "processors to sort with")
	flag.StringVar(&p.Dir, "dir", os.TempDir(), "folder for lines and temporary files")
	flag.StringVar(&p.Command, "command", "freehold", "the freehold command")
	flag.StringVar(&p.Peer, "peer", "records", "who sorts")
	flag.Parse()
	p.Max, p.Read = max(p.Max, p.Min), *read != 0
	p.Warm, p.Run = time.Duration(*warm)*time.Millisecond, time.Duration(*run)*time.Millisecond

	is, err := version(&p)
	if err != nil {
		Fail(err)
	}
	var s Sample
	if p.Load != "version" {
		if s, err = load(&p); err != nil {
			Fail(err)
		}
	}
	tell := wire.NewWriter(os.Stdout)
	if s.Skip != "" {
		tell.Unavailable(s.Skip)
		return
	}
	s.Version = is
	if s.CPU == 0 {
		s.CPU = float64(measured.cpu)
	}
	s.CPU /= float64(max(s.Ops, 1))
	s.GCs = measured.gcs
	tell.Result(s, nil)
}
