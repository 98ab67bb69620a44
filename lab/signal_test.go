//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/lab/load"
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
			cmd := exec.CommandContext(t.Context(), exe, with(tinyMemtest, "--cycles", "1000000", "--csv", file)...)
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

// A child that is interrupted by the terminal and by its parent is interrupted once.
func TestChildIsInterruptedTwice(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	flags, err := json.Marshal(settings{Boxes: load.Boxes{Kind: load.BoxNone, Rounds: 1, Hold: time.Hour, Deadline: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	run, err := json.Marshal(load.BoxRun{Limit: 64 << 20, Share: 10, Mode: load.BoxDefault, Run: 1})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "child", "budget", string(run), string(flags))
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
