// Keyed: one container, one load, one sample.
//
// The container is chosen at build time, as the allocator of worker/ is: one
// peer_*.go file is in the build, and the loops call its functions directly.

package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/freehold-go/freehold/lab/process"
)

// params say what to run.
type params struct {
	load       string
	entries    int
	goroutines int           // shared loads
	warm, run  time.Duration // shared loads
}

// result is what one sample found. Fields that do not apply stay zero.
type result struct {
	ns       float64 // per operation, the mean over goroutines
	ops      int
	cpu      int64 // ns in all
	gcs      int64
	sum      uint64 // of what was found; equal for all peers of a load
	resident uint64 // bytes that the process grew by
	objects  float64
}

// loads has the loads that this build's container can do.
var loads = map[string]func(*params) result{}

func main() {
	var p params
	flag.StringVar(&p.load, "load", "", "what to run; version only prints the peer's version")
	flag.IntVar(&p.entries, "entries", 1_000_000, "entries in the container")
	flag.IntVar(&p.goroutines, "goroutines", 2, "goroutines of shared loads")
	warm := flag.Int("warm", 100, "warm-up of shared loads in ms")
	run := flag.Int("run", 400, "measurement of shared loads in ms")
	flag.Parse()
	p.warm, p.run = time.Duration(*warm)*time.Millisecond, time.Duration(*run)*time.Millisecond

	fmt.Printf("version=%s\n", runtime.Version())
	if p.load == "version" {
		return
	}
	load := loads[p.load]
	if load == nil {
		fail(fmt.Errorf("this container has no load %q", p.load))
	}
	r := load(&p)
	ops := float64(max(r.ops, 1))
	fmt.Printf("ns=%.4f\nops=%d\ncpu=%.4f\ngcs=%d\nsum=%d\n", r.ns, r.ops, float64(r.cpu)/ops, r.gcs, r.sum)
	fmt.Printf("requested=%d\nresident=%d\nmallocs=%.6f\n", p.entries, r.resident, r.objects)
}

// timed measures n operations of f.
func timed(n int, f func()) (r result) {
	runtime.GC()
	r.cpu, r.gcs = -process.CPUTime(), -process.Collections()
	start := time.Now()
	f()
	r.ns, r.ops = float64(time.Since(start))/float64(n), n
	r.cpu += process.CPUTime()
	r.gcs += process.Collections()
	return r
}

// filled measures what a container of p.entries holds: resident bytes, and objects of
// the Go heap. Garbage is collected before.
func filled(p *params, fill func() (keep any)) (r result) {
	runtime.GC()
	before, err := process.Resident()
	if err != nil {
		fmt.Printf("skip=%s\n", err)
		os.Exit(0)
	}
	objects := heapObjects()
	keep := fill()
	runtime.GC()
	r.objects = float64(heapObjects() - objects)
	after, err := process.Resident()
	if err != nil {
		fail(err)
	}
	r.resident, r.sum = after-min(before, after), uint64(p.entries)
	runtime.KeepAlive(keep)
	return r
}

func heapObjects() int64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapObjects)
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "keyed: %v\n", err)
	os.Exit(1)
}

// must ends the sample: a container that runs out of memory has no figure.
func must(err error) {
	if err != nil {
		fail(err)
	}
}
