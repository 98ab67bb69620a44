// Keyed: one container, one load, one sample.
//
// The container is chosen at build time, as the allocator of worker/ is: one
// peer_*.go file is in the build, and the loops call its functions directly.

package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/freehold-go/freehold/lab/bench/sample"
	"github.com/freehold-go/freehold/lab/process"
)

type (
	params = sample.Params
	result = sample.Sample
)

// loads has the loads that this build's container can do.
var loads = map[string]func(*params) result{}

func main() {
	sample.Main(func(*params) (string, error) { return runtime.Version(), nil }, func(p *params) (result, error) {
		load := loads[p.Load]
		if load == nil {
			return result{}, fmt.Errorf("this container has no load %q", p.Load)
		}
		r := load(p)
		r.Requested = uint64(p.Entries)
		return r, nil
	})
}

// timed measures n operations of f.
func timed(n int, f func()) (r result) {
	runtime.GC()
	sample.Begin()
	start := time.Now()
	f()
	r.NS, r.Ops = float64(time.Since(start))/float64(n), n
	sample.End()
	return r
}

// filled measures what a container of p.Entries holds: resident bytes, and objects of
// the Go heap. Garbage is collected before.
func filled(p *params, fill func() (keep any)) (r result) {
	runtime.GC()
	before, err := process.Resident()
	if err != nil {
		return result{Skip: err.Error()}
	}
	objects := heapObjects()
	keep := fill()
	runtime.GC()
	r.Mallocs = float64(heapObjects() - objects)
	after, err := process.Resident()
	if err != nil {
		sample.Fail(err)
	}
	r.Resident, r.Sum = after-min(before, after), uint64(p.Entries)
	runtime.KeepAlive(keep)
	return r
}

func heapObjects() int64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapObjects)
}

// must ends the sample: a container that runs out of memory has no figure.
func must(err error) {
	if err != nil {
		sample.Fail(err)
	}
}
