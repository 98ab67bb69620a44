// Command freehold shows what freehold does on the machine at hand.
//
//	freehold demo       a tour in under a minute
//	freehold memtest    a long sawtooth load, with resident memory over time,
//	                    on freehold, the Go heap, libc or jemalloc
//	freehold version
//
// It is a module of its own, so that its libraries (command line, tables,
// charts) are no part of the core. Install it, or run it from a clone of the
// repository:
//
//	go install github.com/freehold-go/freehold/cmd/freehold@latest
//	go run ./cmd/freehold demo
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1   // the run found something wrong or could not go on
	exitUsage       = 2   // flags that make no sense, here; nothing has been run
	exitInterrupted = 130 // SIGINT, as shells report it, or SIGTERM
)

// commands is the command line; the fields' tags are its help.
type commands struct {
	Demo    demoCommand    `cmd:"" help:"A tour of what freehold does, in under a minute."`
	Memtest memtestCommand `cmd:"" help:"Grow to many GiB and shrink again, over and over, and show how much memory stays."`
	Version versionCommand `cmd:"" help:"Print the version."`

	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`

	Child childCommand `cmd:"" hidden:"" help:"One measurement of a story, in a process of its own."`
}

// A usageError is the user's mistake, found before anything has run.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

// streams are where a command writes: results to out, progress to err.
type streams struct {
	out, err io.Writer
}

func main() {
	// The first signal ends the run in order, with what has been measured so
	// far; a second one ends the process.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], streams{os.Stdout, os.Stderr}))
}

// run is main with everything it touches as a parameter. It returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	if len(args) == 0 {
		args = []string{"--help"}
	}
	exited, code := false, exitOK
	parser, err := kong.New(&commands{},
		kong.Name("freehold"),
		kong.Description("Off-heap memory for Go, shown at work. See https://github.com/freehold-go/freehold."),
		kong.Writers(s.out, s.err),
		kong.Exit(func(c int) { exited, code = true, c }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(s),
		kong.Vars{
			"stories": storyNames(), "backends": strings.Join(backendNames(), ", "),
			"contenders": strings.Join(contenderNames(), ", "), "version": version(),
		},
	)
	if err != nil {
		panic(err) // the struct above is wrong
	}
	cmd, err := parser.Parse(joinNegatives(args))
	if exited { // --help
		return code
	}
	if err != nil {
		err = usageError{err}
	} else {
		err = cmd.Run()
	}

	var usage usageError
	var unavailable unavailableError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(s.err, "freehold: interrupted")
		return exitInterrupted
	case errors.As(err, &usage), errors.As(err, &unavailable):
		fmt.Fprintf(s.err, "freehold: %v\n", err)
		return exitUsage
	default:
		fmt.Fprintf(s.err, "freehold: %v\n", err)
		return exitFailed
	}
}

// joinNegatives writes "--flag -1" as "--flag=-1". The parser takes -1 by itself
// for a flag, and the checks of --flag say better what is wrong.
func joinNegatives(args []string) (joined []string) {
	for i, arg := range args {
		if i > 0 && negative.MatchString(arg) && strings.HasPrefix(args[i-1], "--") && !strings.Contains(args[i-1], "=") {
			joined[len(joined)-1] += "=" + arg
			continue
		}
		joined = append(joined, arg)
	}
	return joined
}

var negative = regexp.MustCompile(`^-\.?[0-9]`)
