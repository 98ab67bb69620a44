// Lab measures freehold beside others, and writes reports.
//
//	go run ./lab budget     a container's memory limit, with a budget and without
//	go run ./lab memtest    a long load that rises and falls, with resident memory over time
//	go run ./lab gclab      what gigabytes of live data cost the garbage collector
//	go run ./lab servers    freehold cache beside memcached, by their protocol
//	go run ./lab simulate   what caches answer of recorded requests, in a trace file of your own
//	go run ./lab bench      all allocators, containers and sorts beside their peers
//
// It is a module of its own with the libraries and the peers that this takes.
package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/internal/sysmem"
	"github.com/freehold-go/freehold/lab/bench"
	"github.com/freehold-go/freehold/lab/load"
	"github.com/freehold-go/freehold/lab/servers"
	"github.com/freehold-go/freehold/lab/simulate"
	"github.com/freehold-go/freehold/lab/subject"
)

// commands is the command line; the fields' tags are its help.
type commands struct {
	Budget   budgetCommand    `cmd:"" help:"A memory limit with Go's defaults, with GOMEMLIMIT and with a budget."`
	Memtest  memtestCommand   `cmd:"" help:"Grow to many GiB and shrink again, over and over, and show how much memory stays."`
	GCLab    gclabCommand     `cmd:"" name:"gclab" help:"Keep gigabytes live under load, and show what that costs the garbage collector, on the Go heap and off it."`
	Servers  servers.Command  `cmd:"" help:"freehold cache beside memcached."`
	Simulate simulate.Command `cmd:"" help:"Run recorded requests against freehold's cache and its peers, and show how many each answers."`
	Bench    bench.Command    `cmd:"" help:"Run freehold beside its peers: allocators, arenas, maps, sorts."`

	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`

	Child childCommand `cmd:"" hidden:"" help:"One measurement of a story, in a process of its own."`
}

func version() string { return cli.Version("lab") }

func main() { program().Main(cli.Streams{Out: os.Stdout, Err: os.Stderr, In: os.Stdin}) }

func program() cli.Program {
	total, _ := sysmem.Memory()
	size := func(n int64) string { return cli.Size(n).String() }
	return cli.Program{
		Name: "lab", About: "freehold and its peers, measured. See https://github.com/freehold-go/freehold.",
		Version: version(), Commands: &commands{}, Vars: kong.Vars{
			"stories": storyNames(), "kinds": strings.Join(subject.Names(), ","),
			"shapes":   strings.Join(subject.ShapeNames(), ","),
			"memories": strings.Join(subject.LiveMemories, ","), "tunings": strings.Join(load.Tunings, ","),
			"processors": strconv.Itoa(runtime.GOMAXPROCS(0)), "half": size(total / 2), "policies": simulate.Names(), "reserve": load.UsualReserve(total).String(),
		},
	}
}
