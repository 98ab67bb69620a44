package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// Within tests the command is the test binary.
const (
	asCommand = "FREEHOLD_TEST_AS_COMMAND"
	isPatient = "FREEHOLD_TEST_IS_PATIENT" // a server that stops waits an hour for its clients
)

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" && !(len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "-test.")) {
		if os.Getenv(isPatient) != "" {
			graceful = time.Hour
		}
		main()
	}
	os.Setenv(asCommand, "1")
	os.Exit(m.Run())
}

// command runs the command line and returns its status and output.
func command(ctx context.Context, args ...string) (code int, out, err string) {
	var o, e bytes.Buffer
	code = run(ctx, args, cli.Streams{Out: &o, Err: &e})
	return code, o.String(), e.String()
}

func TestCommandLine(t *testing.T) {
	tests := []struct {
		args string
		code int
		want string // somewhere in the output or the errors
	}{
		{"", 0, "Usage: freehold"},
		{"--help", 0, "stats"},
		{"demo --help", 0, "--nodes"},
		{"version", 0, "freehold "},
		{"--version", 0, version() + "\n"},
		{"demo --version", 0, version() + "\n"},
		{"help", 0, "Usage: freehold <command>"},
		{"help sort", 0, "Usage: freehold sort"},
		{"nothing", 2, "unexpected argument nothing; see freehold --help"},
		{"help nothing", 2, "unexpected argument nothing"},
		{"demo --nodes", 2, "--nodes: a value is missing; see freehold demo --help"},
		{"cache -m", 2, "--memory: a value is missing; see freehold cache --help"},
		{"cache -p 11211", 2, "unknown flag -p; see freehold cache --help"},
		{"demo --nothing", 2, "unknown flag --nothing"},
		{"demo extra", 2, "unexpected argument extra"},
		{"demo --high much", 2, `"much" is not a size: write bytes, or a number with KiB, MiB, GiB or TiB (powers of 1024) or KB, MB, GB or TB (powers of 1000)`},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			code, out, err := command(t.Context(), strings.Fields(tt.args)...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if !strings.Contains(out+err, tt.want) {
				t.Errorf("printed %q and %q, want %q in it", out, err, tt.want)
			}
			if code == cli.Misused && out != "" {
				t.Errorf("a wrong flag printed results: %q", out)
			}
		})
	}
}

// broken is a writer that takes some bytes and then no more.
type broken struct{ left int }

var errBroken = errors.New("no space left")

func (b *broken) Write(p []byte) (int, error) {
	if len(p) > b.left {
		return 0, errBroken
	}
	b.left -= len(p)
	return len(p), nil
}

// A report that cannot be written is a failure, whatever part of it is lost.
func TestReportThatCannotBeWritten(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"help", "sort"}, {"version"}, {"--version"}, tinyDemo} {
		for _, room := range []int{0, 200} {
			if len(args) <= 2 && room > 0 {
				continue
			}
			var errs bytes.Buffer
			code := run(t.Context(), args, cli.Streams{Out: &broken{room}, Err: &errs})
			if n := strings.Count(errs.String(), errBroken.Error()); code != cli.Failed || n != 1 || !strings.Contains(errs.String(), "freehold: writing standard output: no space left\n") {
				t.Errorf("%v with room for %d bytes: exit code %d, %q", args, room, code, errs.String())
			}
		}
	}
}

// An interrupted run says so, and names its losses.
func TestInterruptedAndUnwritable(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errs bytes.Buffer
	code := run(ctx, tinyDemo, cli.Streams{Out: &broken{}, Err: &errs})
	const want = "freehold: interrupted\nfreehold: writing standard output: no space left\n"
	if code != cli.Failed || errs.String() != want {
		t.Errorf("exit code %d, %q, want %d, %q", code, errs.String(), cli.Failed, want)
	}
}

// processOf runs any program.
func processOf(t *testing.T, env []string, program string, args ...string) (code int, out, err string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), env...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	if failed := cmd.Run(); failed != nil && cmd.ProcessState == nil {
		t.Fatal(failed)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

var control = regexp.MustCompile(`[\x00-\x09\x0b-\x1f\x7f]`)

// checkPlain fails if text has anything that only a terminal understands.
func checkPlain(t *testing.T, text string) {
	t.Helper()
	if at := control.FindString(text); at != "" {
		t.Errorf("piped output has the control character %q:\n%s", at, text)
	}
}

// run is main with everything it touches as a parameter. It returns the exit code.
func run(ctx context.Context, args []string, s cli.Streams) int {
	return program(args).Run(ctx, args, s)
}
