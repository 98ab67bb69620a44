// Sorter: one sort, append or growth by one peer, one sample.
//
// It prints the same lines as worker/. A load here takes tenths of a second or
// more, so the peers are called through interfaces. Input is made before the
// time begins and the result is verified after it ends; the sum that is printed
// depends on the order of the result.

package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/freehold-go/freehold/lab/process"
)

// params say what to run. Sizes are in bytes.
type params struct {
	load     string
	records  int    // to sort or to append
	top      int    // what growth ends with
	kind     string // of lines
	bytes    int64  // of lines
	memory   int64  // that a sort of lines may use
	parallel int
	dir      string // for lines and temporary files
	command  string // the freehold command
}

// result is what one sample found. Fields that do not apply stay zero.
type result struct {
	ns        float64 // per operation
	ops       int
	cpu       float64 // ns
	sum       uint64  // of the result, in order
	requested uint64  // bytes that were asked for
	resident  uint64  // bytes that the process grew by, at its peak
	peak      uint64  // bytes that the process had, at its peak
}

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
	var p params
	name := flag.String("peer", "records", "who sorts")
	flag.StringVar(&p.load, "load", "sort24", "what to run; version only prints the peer's version")
	flag.IntVar(&p.records, "records", 10_000_000, "records to sort or to append")
	flag.IntVar(&p.top, "top", 1<<30, "bytes that a buffer grows to")
	flag.StringVar(&p.kind, "kind", "mixed", "kind of lines")
	flag.Int64Var(&p.bytes, "bytes", 1_000_000_000, "bytes of lines")
	flag.Int64Var(&p.memory, "memory", 200<<20, "bytes of memory to sort lines with")
	flag.IntVar(&p.parallel, "parallel", runtime.GOMAXPROCS(0), "processors to sort with")
	flag.StringVar(&p.dir, "dir", os.TempDir(), "folder for lines and temporary files")
	flag.StringVar(&p.command, "command", "freehold", "the freehold command")
	flag.Parse()

	who, ok := peers[*name]
	if !ok {
		fail(fmt.Errorf("no peer %q", *name))
	}
	version, err := who.version(&p)
	if err != nil {
		fail(err)
	}
	fmt.Printf("version=%s\n", version)
	if p.load == "version" {
		return
	}
	r, err := who.run(&p)
	if err != nil {
		fail(err)
	}
	fmt.Printf("ns=%.0f\nops=%d\ncpu=%.0f\nsum=%d\n", r.ns, r.ops, r.cpu/float64(r.ops), r.sum)
	fmt.Printf("requested=%d\nresident=%d\npeak=%d\n", r.requested, r.resident, r.peak)
}

func (who peer) run(p *params) (result, error) {
	switch {
	case p.load == "grow" && who.grow != nil:
		return runGrow(p, who.grow)
	case (p.load == "append" || p.load == "append-fixed") && who.append != nil:
		return runAppend(p, who.append)
	case p.load == "lines" && who.lines != nil:
		return runLines(p, who.lines)
	case who.newSet != nil:
		return runSort(p, who.newSet)
	}
	return result{}, fmt.Errorf("this peer has no load %q", p.load)
}

// timed calls f and returns the time that it took, and the processor time.
func timed(f func() error) (ns, cpu float64, err error) {
	began, used := time.Now(), process.CPUTime()
	err = f()
	return float64(time.Since(began)), float64(process.CPUTime() - used), err
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "sorter: %v\n", err)
	os.Exit(1)
}

func goVersion(*params) (string, error) { return runtime.Version(), nil }
