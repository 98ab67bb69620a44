// Command freehold shows what freehold does on the machine at hand.
//
//	freehold demo       a tour in half a minute
//	freehold memtest    a long sawtooth load, with resident memory over time,
//	                    on freehold, the Go heap, libc or jemalloc
//	freehold gclab      what gigabytes of live data cost the garbage collector,
//	                    on the Go heap and off it
//	freehold sort       GNU sort's common options, for input larger than memory
//	freehold stats      the off-heap memory of a running program, live
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
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1   // the run found something wrong or could not go on
	exitUsage       = 2   // flags that make no sense, here; nothing has been run. Every error of sort
	exitInterrupted = 130 // SIGINT, as shells report it, or SIGTERM
)

// commands is the command line; the fields' tags are its help.
type commands struct {
	Demo    demoCommand    `cmd:"" help:"A tour of what freehold does, in half a minute."`
	Memtest memtestCommand `cmd:"" help:"Grow to many GiB and shrink again, over and over, and show how much memory stays."`
	GCLab   gclabCommand   `cmd:"" name:"gclab" help:"Keep gigabytes live under load, and show what that costs the garbage collector, on the Go heap and off it."`
	Sort    sortCommand    `cmd:"" help:"Sort lines or binary records in bounded memory, as GNU sort does in the C locale."`
	Stats   statsCommand   `cmd:"" help:"Show the off-heap memory of a running program that has mounted the page of package track/web."`
	Version versionCommand `cmd:"" help:"Print the version."`

	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`

	Child   childCommand   `cmd:"" hidden:"" help:"One measurement of a story, in a process of its own."`
	BoxLoad boxLoadCommand `cmd:"" hidden:"" name:"boxload" help:"The load of the story budget, in its box."`
}

// A usageError is the user's mistake, found before anything has run.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

// streams are where a command writes, results to out and progress to err, and what
// it reads.
type streams struct {
	out, err io.Writer
	in       io.Reader
}

// A sink writes until its writer fails, and remembers that error for all who print
// without a look at it.
type sink struct {
	io.Writer
	failed error
}

func (s *sink) Write(p []byte) (int, error) {
	if s.failed != nil {
		return 0, s.failed
	}
	n, err := s.Writer.Write(p)
	s.failed = err
	return n, err
}

func main() {
	// The first signal ends the run in order, with what has been measured so
	// far; a second one ends the process.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	out := io.Writer(os.Stdout)
	if len(os.Args) > 1 && os.Args[1] == "sort" {
		out = stdout()
	}
	os.Exit(run(ctx, os.Args[1:], streams{out, os.Stderr, os.Stdin}))
}

// run is main with everything it touches as a parameter. It returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help": // as other commands have it: help, help memtest
		args = append(slices.Clone(args[1:]), "--help")
	}
	out, errs := &sink{Writer: s.out}, &sink{Writer: s.err}
	err := dispatch(ctx, args, streams{out, errs, s.in})
	sorts := args[0] == "sort"
	if out.failed != nil {
		lost := fmt.Errorf("writing standard output: %w", out.failed)
		if sorts {
			lost = sortError{lost}
		}
		switch {
		case errors.As(err, new(usageError)): // the parser's, for --help
			err = lost
		case !errors.Is(err, out.failed):
			err = errors.Join(err, lost)
		}
	}
	code := report(err, errs)
	switch {
	case errs.failed != nil && sorts && code == exitFailed:
		return exitUsage // -c, which could not name the line
	case errs.failed != nil && code == exitOK:
		return exitFailed
	}
	return code
}

// dispatch runs the command that args name.
func dispatch(ctx context.Context, args []string, s streams) error {
	exited := false
	parser, err := kong.New(&commands{},
		kong.Name("freehold"),
		kong.Description("Off-heap memory for Go, shown at work. See https://github.com/freehold-go/freehold."),
		kong.Writers(s.out, s.err),
		kong.Exit(func(int) { exited = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(s),
		kong.Vars{
			"stories": storyNames(), "backends": strings.Join(backendNames(), ", "),
			"contenders": strings.Join(contenderNames(), ", "), "version": version(),
			"shapes": strings.Join(shapeNames(), ", "),
		},
	)
	if err != nil {
		panic(err) // the struct above is wrong
	}
	if args[0] == "sort" {
		parser.Model.HelpFlag.Short = 0 // sort's -h is GNU sort's, which is not there
		args = joinValues(args, parser)
	} else {
		args = joinNegatives(args)
	}
	cmd, err := parser.Parse(args)
	switch {
	case exited: // --help, --version
		return nil
	case err != nil:
		return usageError{plainly(err, parser)}
	}
	return cmd.Run()
}

// report says what went wrong, if anything did. It returns the exit code.
func report(err error, w io.Writer) int {
	if err == nil {
		return exitOK
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(w, "freehold: interrupted")
		if err = beside(err, context.Canceled); err == nil {
			return exitInterrupted
		}
	}
	if errors.Is(err, errDisorder) { // which has been shown
		return exitFailed
	}
	fmt.Fprintf(w, "freehold: %s\n", strings.TrimPrefix(err.Error(), "freehold: "))
	var failedSort sortError
	if errors.As(err, &failedSort) {
		return exitUsage
	}
	var usage usageError
	var unavailable unavailableError
	if errors.As(err, &usage) || errors.As(err, &unavailable) {
		return exitUsage
	}
	return exitFailed
}

// plainly says what is wrong with the command line, and who knows more: the parser
// writes for those who know it.
func plainly(err error, parser *kong.Kong) error {
	command := "freehold"
	var wrong *kong.ParseError
	if errors.As(err, &wrong) && wrong.Context.Selected() != nil {
		command += " " + wrong.Context.Selected().Name
	} else if strings.HasPrefix(err.Error(), "unexpected argument ") {
		var names []string
		for _, c := range parser.Model.Children {
			if !c.Hidden {
				names = append(names, c.Name)
			}
		}
		err = fmt.Errorf("%w; the commands are %s", err, joined(names))
	}
	if flag := missing.FindStringSubmatch(err.Error()); flag != nil {
		err = fmt.Errorf("%s needs a value", flag[1])
	}
	if flag := noNumber.FindStringSubmatch(err.Error()); flag != nil {
		err = fmt.Errorf("%s: %s is no whole number", flag[1], flag[2])
	}
	if flag := unknown.FindStringSubmatch(err.Error()); flag != nil {
		switch {
		case command == "freehold sort" && slices.Contains(notThere, flag[1]):
			err = fmt.Errorf("%s is an option of GNU sort that is not there", flag[1])
		case !strings.HasPrefix(flag[1], "--"): // every letter would be proposed
			err = errors.New(flag[0])
		}
	}
	return fmt.Errorf("%w; see %s --help", err, command)
}

var (
	missing  = regexp.MustCompile(`^(--\S+): expected .* but got "(EOL"|--)`)
	noNumber = regexp.MustCompile(`^(--\S+): expected a valid \d+ bit int but got (".*")`)
	unknown  = regexp.MustCompile(`^unknown flag (--?[^ ,]+)`)
)

// beside returns what err, which errors.Join may have made, holds beside target.
func beside(err, target error) error {
	parts, ok := err.(interface{ Unwrap() []error })
	if !ok {
		if errors.Is(err, target) {
			return nil
		}
		return err
	}
	var rest []error
	for _, part := range parts.Unwrap() {
		rest = append(rest, beside(part, target))
	}
	return errors.Join(rest...)
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
