// Package cli has the common parts of the commands freehold and lab: command lines, exit codes,
// sizes, and output on a terminal.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/willabides/kongplete"
)

// Exit codes.
const (
	OK          = 0
	Failed      = 1   // the run found a fault or could not go on
	Misused     = 2   // wrong flags; nothing has run
	Interrupted = 130 // SIGINT, as shells report it, or SIGTERM
)

// An Error has its own exit code. It is not shown if Err is nil.
type Error struct {
	Err  error
	Code int
}

func (e *Error) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Usagef returns an error for a mistake of the user that was found before anything has run.
func Usagef(format string, a ...any) error { return &Error{fmt.Errorf(format, a...), Misused} }

// Streams are a command's streams. It writes results to Out and progress to Err.
type Streams struct {
	Out, Err io.Writer
	In       io.Reader
}

// A sink writes until its writer fails, and keeps that error, since callers of Fprintf ignore it.
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

// A Program is a command line.
type Program struct {
	Name, About, Version string
	Commands             any // a struct for kong
	Vars                 kong.Vars
	Args                 func(parser *kong.Kong, args []string) []string // changes the arguments; may be nil
	Failed               int                                             // exit code of failures; 0 is Failed
}

// Main runs the program with the process's arguments, and exits.
func (p Program) Main(s Streams) {
	// The first signal ends the run in order, with the results so far. A second one ends
	// the process.
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	context.AfterFunc(ctx, stop)
	if parentIgnores(syscall.SIGPIPE) {
		signal.Ignore(syscall.SIGPIPE)
	}
	os.Exit(p.Run(ctx, os.Args[1:], s))
}

// endings returns the signals that end a run. If SIGINT was ignored at the start, as for a
// background job of a script, it stays ignored.
func endings() []os.Signal {
	if signal.Ignored(os.Interrupt) {
		return []os.Signal{syscall.SIGTERM}
	}
	return []os.Signal{os.Interrupt, syscall.SIGTERM}
}

// Run is Main with parameters instead of the process's state. It returns the exit code.
func (p Program) Run(ctx context.Context, args []string, s Streams) int {
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help": // help and help sort, as in other commands
		args = append(slices.Clone(args[1:]), "--help")
	}
	p.Failed = max(p.Failed, Failed)
	out, errs := &sink{Writer: s.Out}, &sink{Writer: s.Err}
	err := p.dispatch(ctx, args, Streams{out, errs, s.In})
	if out.failed != nil {
		lost := fmt.Errorf("writing standard output: %w", out.failed)
		var known *Error
		switch {
		case errors.As(err, &known) && known.Code == Misused: // the parser could not write --help
			err = lost
		case !errors.Is(err, out.failed):
			err = errors.Join(err, lost)
		}
	}
	code := p.report(err, errs)
	if errs.failed != nil {
		code = max(code, p.Failed)
	}
	return code
}

// dispatch runs the command in args.
func (p Program) dispatch(ctx context.Context, args []string, s Streams) error {
	exited := false
	vars := kong.Vars{"version": p.Version}.CloneWith(p.Vars)
	parser, err := kong.New(p.Commands, kong.Name(p.Name), kong.Description(p.About), vars,
		kong.Writers(s.Out, s.Err),
		kong.Exit(func(int) { exited = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(s),
	)
	if err != nil {
		panic(err) // the struct is wrong
	}
	if kongplete.Complete(parser); exited { // a shell asked for completions
		return nil
	}
	if p.Args != nil {
		args = p.Args(parser, args)
	}
	cmd, err := parser.Parse(args)
	switch {
	case exited: // --help, --version
		return nil
	case err != nil:
		command := p.Name
		var wrong *kong.ParseError
		if errors.As(err, &wrong) && wrong.Context.Selected() != nil {
			command += " " + wrong.Context.Selected().Name
		}
		return Usagef("%s; see %s --help", plain(err.Error()), command)
	}
	if flag := emptied(cmd); flag != nil {
		return Usagef("--%s is empty, as from a variable that is not set", flag.Name)
	}
	return cmd.Run()
}

// plain returns the text of a parser's error in plain words. It drops the suggestions for an unknown
// flag of one letter: the parser finds each other letter similar.
func plain(text string) string {
	if before, ok := strings.CutSuffix(text, ` value but got "EOL" (<EOL>)`); ok {
		flag, _, _ := strings.Cut(before, ": expected ")
		return flag + ": a value is missing"
	}
	if strings.HasPrefix(text, "unknown flag -") && !strings.HasPrefix(text, "unknown flag --") {
		text, _, _ = strings.Cut(text, ", did you mean")
	}
	return text
}

// emptied returns a flag that the command line has with an empty text, or nil. Commands take such
// a text for a flag that is not there: a server would admit clients without a password.
func emptied(cmd *kong.Context) *kong.Flag {
	for _, at := range cmd.Path {
		if f := at.Flag; f != nil && f.Target.Kind() == reflect.String && f.Target.Len() == 0 {
			return f
		}
	}
	return nil
}

// report prints err, if it is not nil. It returns the exit code.
func (p Program) report(err error, w io.Writer) int {
	if errors.Is(err, context.Canceled) {
		fmt.Fprintf(w, "%s: interrupted\n", p.Name)
		if err = beside(err, context.Canceled); err == nil {
			return Interrupted
		}
	}
	if err == nil {
		return OK
	}
	if text := err.Error(); text != "" {
		fmt.Fprintf(w, "%s: %s\n", p.Name, strings.TrimPrefix(text, "freehold: "))
	}
	var own *Error
	if errors.As(err, &own) {
		return own.Code
	}
	return p.Failed
}

// beside returns err without target. err may be a result of errors.Join.
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
