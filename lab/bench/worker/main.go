// Worker: one allocator, one load, one sample.
//
// The allocator is chosen at build time: exactly one peer_*.go file is in the
// build, and the loops call its functions directly, as a user's program would.
// native/native.c is the same program in C; both print the same lines.

package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/freehold-go/freehold/lab/process"
)

// params say what to run. Sizes are uniform in min..max bytes.
type params struct {
	load      string
	min, max  int
	threads   int
	slots     int           // live blocks per thread (mixed, scatter) or in all (live)
	warm, run time.Duration // per sample
	ops       int           // run exactly this many instead of for a time; 0 means for a time
	read      bool          // handover: the consumer looks at the blocks
	top       int           // grow, copy: the last size in bytes
}

// result is what one sample found. Fields that do not apply stay zero.
type result struct {
	ns        float64 // per operation, the mean over threads
	ops       int
	sum       uint64 // of what the random numbers chose; equal in Go and C
	requested uint64 // bytes in live blocks
	resident  uint64 // bytes the process grew by
	mallocs   float64
	skip      string // why this peer cannot do the load
}

var loads = map[string]func(*params) result{
	"pair":     runPair,
	"zeroed":   runZeroed,
	"mixed":    runMixed,
	"scatter":  runScatter,
	"handover": runHandover,
	"grow":     runGrow,
	"copy":     runCopy,
	"live":     runLive,
	"churn":    runChurn,
	"mallocs":  runMallocs,
}

func main() {
	var p params
	flag.StringVar(&p.load, "load", "pair", "what to run")
	flag.IntVar(&p.min, "min", 64, "smallest size in bytes")
	flag.IntVar(&p.max, "max", 0, "largest size in bytes; 0 means min")
	flag.IntVar(&p.threads, "threads", 1, "goroutines at once")
	flag.IntVar(&p.slots, "slots", 10_000, "live blocks")
	warm := flag.Int("warm", 20, "warm-up in ms")
	run := flag.Int("run", 60, "measurement in ms")
	flag.IntVar(&p.ops, "ops", 0, "run exactly this many operations")
	read := flag.Int("read", 0, "1: the consumer reads each block")
	flag.IntVar(&p.top, "top", 1<<30, "last size in bytes of grow and copy")
	flag.Parse()
	p.max, p.read = max(p.max, p.min), *read != 0
	p.warm, p.run = time.Duration(*warm)*time.Millisecond, time.Duration(*run)*time.Millisecond

	load := loads[p.load]
	if load == nil {
		fmt.Fprintf(os.Stderr, "worker: no load %q\n", p.load)
		os.Exit(2)
	}
	r := load(&p)
	fmt.Printf("version=%s\n", version())
	if r.skip != "" {
		fmt.Printf("skip=%s\n", r.skip)
		return
	}
	fmt.Printf("ns=%.4f\nops=%d\nsum=%d\n", r.ns, r.ops, r.sum)
	fmt.Printf("cpu=%.4f\ngcs=%d\n", float64(measured.cpu)/float64(max(r.ops, 1)), measured.gcs)
	fmt.Printf("requested=%d\nresident=%d\nmallocs=%.6f\n", r.requested, r.resident, r.mallocs)
}

// measured is what the whole process did during the measured part: processor
// time in ns and the Go collections, which the wall time of one goroutine hides.
var measured struct {
	cpu int64
	gcs int64
}

// begin and end bracket the measured part.
func begin() {
	measured.gcs = -process.Collections()
	measured.cpu = -process.CPUTime()
}

func end() {
	measured.cpu += process.CPUTime()
	measured.gcs += process.Collections()
}

// fail ends the sample: an allocator that runs out mid-load has no figure.
func fail(err error) {
	fmt.Fprintf(os.Stderr, "worker: %v\n", err)
	os.Exit(1)
}

func goVersion() string { return runtime.Version() }
