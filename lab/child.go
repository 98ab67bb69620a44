// Children: each measurement of the demo runs in a process of its own.
//
// The child is this program with a hidden command. It prints lines of JSON:
// any number of progress messages, then its result.

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// childCommand is the child's side.
type childCommand struct {
	Story    string `arg:""`
	Backend  string `arg:""`
	Settings string `arg:""` // as JSON
}

// A message is one line from child to parent.
type message struct {
	Progress float64         `json:"progress,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	// Unavailable is why the backend cannot be had, instead of a result.
	Unavailable string `json:"unavailable,omitempty"`
}

func (c *childCommand) Run(ctx context.Context, s cli.Streams) error {
	st, err := storyNamed(c.Story)
	if err != nil {
		return err
	}
	var set settings
	if err := json.Unmarshal([]byte(c.Settings), &set); err != nil {
		return cli.Usagef("settings: %w", err)
	}
	// What a terminal sends goes to the parent too, which then ends the child: once is enough.
	// A parent that is gone reads nothing, and the child is to end in order then.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGHUP, syscall.SIGPIPE)
	ctx = lifeline(ctx, s.In)
	out := json.NewEncoder(s.Out)
	result, err := st.measure(ctx, set, c.Backend, func(fraction float64) {
		_ = out.Encode(message{Progress: fraction})
	})
	var unavailable unavailableError
	if errors.As(err, &unavailable) {
		return out.Encode(message{Unavailable: err.Error()})
	}
	if err != nil {
		return err
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return out.Encode(message{Result: raw})
}

// runChild is the parent's side.
func runChild(ctx context.Context, st story, set settings, backend string, progress func(float64), result any) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program, to run it as a child: %w", err)
	}
	flags, err := json.Marshal(set)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, exe, "child", st.name(), backend, string(flags))
	endInOrder(cmd)
	if cmd.Env, err = environment(backend); err != nil {
		return err
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
	var raw json.RawMessage
	var unavailable string
	for in := json.NewDecoder(bufio.NewReader(pipe)); ; {
		var m message
		if in.Decode(&m) != nil {
			break
		}
		switch {
		case m.Result != nil:
			raw = m.Result
		case m.Unavailable != "":
			unavailable = m.Unavailable
		default:
			progress(m.Progress)
		}
	}
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%s on %s: %w: %s", st.name(), backend, err, lastLines(complaint.String()))
	case unavailable != "":
		return unavailablef("%s", unavailable)
	case raw == nil:
		return errors.New("the child ended without a result")
	}
	return json.Unmarshal(raw, result)
}

// inOrder is the time that a process has to end in order.
const inOrder = 5 * time.Second

// lifeline returns a context that ends with the parent, however that ends: the kernel then
// closes the pipe that is this process's standard input. Nothing is ever written to it. A
// process that goes on for long all the same is ended. In tests in may be nil.
func lifeline(ctx context.Context, in io.Reader) context.Context {
	if in == nil {
		return ctx
	}
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
