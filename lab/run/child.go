// Package run runs what measures in processes of its own, so that one heap does not disturb
// another's, and a process that is killed is a result.
package run

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// An UnavailableError says why something cannot be measured in this build or on this machine.
type UnavailableError struct{ error }

func (e UnavailableError) Unwrap() error { return e.error }

func Unavailablef(format string, a ...any) error {
	return &cli.Error{Err: UnavailableError{fmt.Errorf(format, a...)}, Code: cli.Misused}
}

// Self returns this program as a command, to run as a child.
func Self(ctx context.Context, args ...string) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program, to run it as a child: %w", err)
	}
	return exec.CommandContext(ctx, exe, args...), nil
}

// Child runs a command, calls on with each message but the last one, and decodes its result.
// What the command complained of is in the error. result may be incomplete if there is one.
// The command is killed when its context, which is ctx, ends.
func Child(ctx context.Context, cmd *exec.Cmd, on func(Message), result any) error {
	if _, err := cmd.StdinPipe(); err != nil { // the child's lifeline
		return err
	}
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting a child: %w", err)
	}
	var last Message
	for in := json.NewDecoder(bufio.NewReader(pipe)); ; {
		var m Message
		if in.Decode(&m) != nil {
			break
		}
		if m.Result != nil || m.Unavailable != "" {
			last = m
		} else {
			on(m)
		}
	}
	err = cmd.Wait()
	if last.Result != nil {
		err = errors.Join(err, json.Unmarshal(last.Result, result))
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%w: %s", err, lastLines(complaint.String()))
	case last.Unavailable != "":
		return Unavailablef("%s", last.Unavailable)
	case last.Result == nil:
		return errors.New("the child ended without a result")
	case last.Failed != "":
		return errors.New(last.Failed)
	}
	return nil
}

// Killed reports whether an error of Child is that the system killed the child.
func Killed(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.String() == "signal: killed"
}

// Lifeline ends this process, a child, with its parent, however that ends: the kernel then closes
// the pipe that is this process's standard input. Nothing is ever written to it. What a terminal
// sends goes to both, and is for the parent alone. In tests in may be nil.
func Lifeline(in io.Reader) {
	if in == nil {
		return
	}
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		os.Exit(cli.Interrupted)
	}()
}

// lastLines returns the end of a child's standard error.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}
