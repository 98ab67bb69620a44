// Sorter: one sort, append or growth by one peer, one sample.
//
// A load here takes tenths of a second or more, so the peers are called through
// interfaces. Input is made before the time begins and the result is verified after
// it ends; the sum that is told depends on the order of the result.

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

// A peer is who sorts.
type peer struct {
	version func(p *params) (string, error)
	newSet  func(p *params) (set, error)
	grow    func(p *params) (growing, error)
	append  func(p *params) (appending, error)
	lines   func(p *params, from, to string) (run, error)
}

var peers = map[string]peer{
	"records":  {version: goVersion, newSet: newRecords, grow: growBuffer, append: newRecordsAppend},
	"z-buffer": {version: zVersion, newSet: newZ, grow: growZ, append: newZAppend},
	"structs":  {version: goVersion, newSet: newStructs},
	"stable":   {version: goVersion, newSet: newStable},
	"pointers": {version: goVersion, newSet: newPointers},
	"command":  {version: commandVersion, lines: sortByCommand},
	"gnu":      {version: gnuVersion, lines: sortByGNU},
	"extsort":  {version: goVersion, lines: sortByExtsort},
	"lanrat":   {version: lanratVersion, lines: sortByLanrat},
}

func main() {
	sample.Main(func(p *params) (string, error) {
		if peers[p.Peer].version == nil {
			return "", fmt.Errorf("no peer %q", p.Peer)
		}
		return peers[p.Peer].version(p)
	}, func(p *params) (result, error) { return peers[p.Peer].run(p) })
}

func (who peer) run(p *params) (result, error) {
	switch {
	case p.Load == "grow" && who.grow != nil:
		return runGrow(p, who.grow)
	case (p.Load == "append" || p.Load == "append-fixed") && who.append != nil:
		return runAppend(p, who.append)
	case p.Load == "lines" && who.lines != nil:
		return runLines(p, who.lines)
	case who.newSet != nil:
		return runSort(p, who.newSet)
	}
	return result{}, fmt.Errorf("this peer has no load %q", p.Load)
}

// timed calls f and returns the time that it took, and the processor time.
func timed(f func() error) (ns, cpu float64, err error) {
	began, used := time.Now(), process.CPUTime()
	err = f()
	return float64(time.Since(began)), float64(process.CPUTime() - used), err
}

func goVersion(*params) (string, error) { return runtime.Version(), nil }
