//go:build unix

package main

import (
	"bytes"
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
			if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
				t.Errorf("%v, want exit code %d", cmd.ProcessState, exitInterrupted)
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
	cmd := exec.CommandContext(t.Context(), exe, append([]string{"demo", "sawtooth", "--settle", "1h"}, tinyDemo[:6]...)...)
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
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("%v, want exit code %d", cmd.ProcessState, exitInterrupted)
	}
}
