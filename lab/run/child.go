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
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/lab/wire"
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
// When ctx ends, the command is interrupted, or killed if it has a WaitDelay.
func Child(ctx context.Context, cmd *exec.Cmd, on func(wire.Message), result any) error {
	if cmd.WaitDelay == 0 {
		endInOrder(cmd)
	}
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
	var last wire.Message
	for in := json.NewDecoder(bufio.NewReader(pipe)); ; {
		var m wire.Message
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

// inOrder is the time that a process has to end in order.
const inOrder = 5 * time.Second

// Lifeline returns a context that ends with the parent, however that ends: the kernel then
// closes the pipe that is this process's standard input. Nothing is ever written to it. A
// process that goes on for long all the same is ended. In tests in may be nil.
func Lifeline(ctx context.Context, in io.Reader) context.Context {
	if in == nil {
		return ctx
	}
	// What a terminal sends goes to the parent too, which then ends the child: once is enough.
	// A parent that is gone reads nothing, and the child is to end in order then.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGHUP, syscall.SIGPIPE)
	ctx, end := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		end()
		time.AfterFunc(inOrder, func() { os.Exit(cli.Interrupted) })
	}()
	return ctx
}

// endInOrder has a command interrupted when its context ends, so that it removes what it has
// made, such as a control group, and killed only later, or where programs take no signals.
func endInOrder(cmd *exec.Cmd) {
	cmd.Cancel = func() error {
		if cmd.Process.Signal(os.Interrupt) == nil {
			return nil
		}
		return cmd.Process.Kill()
	}
	cmd.WaitDelay = inOrder
}

// lastLines shortens what a child complained of.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}
