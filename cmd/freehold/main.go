// Command freehold has tools around off-heap memory: a cache server, a sort, and views of it.
//
//	freehold cache      a cache that memcached's clients use
//	freehold demo       half a minute of off-heap memory beside the Go heap
//	freehold overlay    Badger, Pebble and ristretto on off-heap memory, with or without cgo
//	freehold sort       GNU sort's common options, for input larger than memory
//	freehold stats      the off-heap memory of a running program, live
//	freehold version
//
//	freehold completion shell completion for bash, zsh and fish
//	freehold man        the manual page
//
// It is a separate module, so that the core does not require its libraries. Install it, or
// run it from a clone of the repository:
//
//	go install ./cmd/freehold       # in a clone
//	go run ./cmd/freehold demo
//
// There is no tagged release yet. After the first one, install it by
// go install github.com/freehold-go/freehold/cmd/freehold@latest.
package main

import (
	"os"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/cmd/freehold/gnu"
)

// commands is the command line; the fields' tags are its help.
type commands struct {
	Cache   cacheCommand   `cmd:"" help:"Serve a cache by memcached's protocol, its items off-heap."`
	Demo    demoCommand    `cmd:"" help:"Compare off-heap memory with the Go heap, in half a minute."`
	Overlay overlayCommand `cmd:"" help:"Write an overlay for go build that makes Badger, Pebble or ristretto allocate off-heap, with or without cgo."`
	Sort    sortCommand    `cmd:"" help:"Sort lines or binary records in bounded memory, as GNU sort does in the C locale."`
	Stats   statsCommand   `cmd:"" help:"Show the off-heap memory of a running program that serves the page of package track/web."`
	Version versionCommand `cmd:"" help:"Print the version."`

	Completion completionCommand `cmd:"" help:"Print a script that makes a shell complete freehold's commands and flags."`
	Man        manCommand        `cmd:"" help:"Print the manual page."`

	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`
}

func main() {
	args := os.Args[1:]
	s := cli.Streams{Out: os.Stdout, Err: os.Stderr, In: os.Stdin}
	if len(args) > 0 && slices.Contains(producers, args[0]) {
		s.Out, s.In = stdout(), stdin()
	}
	program(args).Main(s)
}

// producers are the commands that only produce output, and fail if it is lost.
var producers = []string{"sort", "stats", "completion", "man"}

func sorts(args []string) bool { return len(args) > 0 && args[0] == "sort" }

// program returns the command line for args: sort has the flags and exit codes of GNU sort.
func program(args []string) cli.Program {
	p := cli.Program{
		Name: "freehold", About: "Off-heap memory for Go. See https://github.com/freehold-go/freehold.",
		Version: version(), Commands: &commands{},
	}
	if sorts(args) {
		p.Failed = cli.Misused
		p.Args = func(parser *kong.Kong, args []string) []string {
			parser.Model.HelpFlag.Short = 0 // GNU sort has another -h, which this command lacks
			return gnu.JoinValues(args, parser)
		}
	}
	return p
}
