// Worker: one allocator, one load, one sample.
//
// The allocator is chosen at build time: exactly one peer_*.go file is in the
// build, and the loops call its functions directly, as a user's program would.
// native/native.c is the same program in C; both tell the same.

package main

import (
	"fmt"
	"runtime"

	"github.com/freehold-go/freehold/lab/bench/sample"
)

type (
	params = sample.Params
	result = sample.Sample
)

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
	sample.Main(func(*params) (string, error) { return version(), nil }, func(p *params) (result, error) {
		load := loads[p.Load]
		if load == nil {
			return result{}, fmt.Errorf("no load %q", p.Load)
		}
		return load(p), nil
	})
}

func goVersion() string { return runtime.Version() }
