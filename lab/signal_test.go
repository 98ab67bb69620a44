//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// SIGTERM ends a run as Ctrl-C does: with what has been measured so far.
func TestSignalsEndARunInOrder(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "a.csv")
			cmd := exec.CommandContext(t.Context(), exe, append(tinyRun, "--cycles", "1000000", "--csv", file)...)
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			for rows := 0; rows < 3; time.Sleep(time.Millisecond) {
				data, _ := os.ReadFile(file)
				rows = bytes.Count(data, []byte("\n"))
				select {
				case err := <-ended:
					t.Fatalf("it ended before the signal: %v: %s", err, errs.String())
				default:
				}
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			<-ended
			if code := cmd.ProcessState.ExitCode(); code != cli.Interrupted {
				t.Errorf("%v, want exit code %d", cmd.ProcessState, cli.Interrupted)
			}
			if !strings.Contains(errs.String(), "interrupted") || !strings.Contains(out.String(), "Interrupted after") {
				t.Errorf("printed %q and %q", out.String(), errs.String())
			}
		})
	}
}

func TestSignalEndsTheDemo(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, append([]string{"report", "sawtooth", "--settle", "1h"}, tinyTour[:6]...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1)
	if _, err := out.Read(first); err != nil { // it has begun
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != cli.Interrupted {
		t.Errorf("%v, want exit code %d", cmd.ProcessState, cli.Interrupted)
	}
}

// A child removes what it has made before it ends.
func TestChildEndsInOrder(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", `trap 'rm "$0"; exit 1' INT; touch "$0"; while :; do sleep 0.01; done`, made)
	endInOrder(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(made); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := cmd.Wait(); err == nil {
		t.Error("the command was not interrupted")
	}
	if _, err := os.Stat(made); err == nil {
		t.Error("what the command had made is left")
	}
}

// A child that is interrupted by the terminal and by its parent is interrupted once.
func TestChildIsInterruptedTwice(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	flags, err := json.Marshal(settings{Box: boxSettings{Kind: boxNone, Rounds: 1, Hold: time.Hour, Deadline: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "child", "budget", boxRun{64 << 20, 10, boxDefault, 1}.name(), string(flags))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil { // its lifeline
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // its load runs
		t.Fatal(err)
	}
	for range 20 {
		_ = cmd.Process.Signal(os.Interrupt) // an error once it has ended
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != cli.Interrupted {
		t.Errorf("%v, want exit code %d", cmd.ProcessState, cli.Interrupted)
	}
}

// A child that the kernel kills, as it does for lack of memory, is told of.
func TestChildThatIsKilled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			children, _ := self.Children()
			for _, c := range children {
				if line, _ := c.Cmdline(); strings.Contains(line, "array/go/default") {
					_ = c.Kill()
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	code, out, errs := command(ctx, tinyLabWith("--data", "array", "--backend", "go", "--tuning", "default", "--time", "1h")...)
	const want = "the system killed it, most likely for lack of memory"
	if code != cli.Failed || !strings.Contains(out, want) || !strings.Contains(errs, want) {
		t.Errorf("exit code %d, %q and %q", code, out, errs)
	}
}
