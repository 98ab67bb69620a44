//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// SIGTERM ends a run as Ctrl-C does, and the figures so far are written. A terminal sends Ctrl-C to
// the child too, which leaves its end to the parent.
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
			if child := childOf(cmd.Process.Pid, "child"); child != 0 { // which only Linux tells
				_ = syscall.Kill(child, signal)
				_ = syscall.Kill(child, syscall.SIGHUP)
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			<-ended
			if code := cmd.ProcessState.ExitCode(); code != cli.Interrupted {
				t.Errorf("%v, want exit code %d", cmd.ProcessState, cli.Interrupted)
			}
			if !strings.Contains(errs.String(), "interrupted") || !strings.Contains(out.String(), "Interrupted after") ||
				strings.Contains(out.String(), "  stopped\n") { // in place of figures
				t.Errorf("printed %q and %q", out.String(), errs.String())
			}
		})
	}
}

// childOf returns the process that another has started with a command, 0 if there is none or the
// system does not tell. Go's runtime starts short ones of its own.
func childOf(pid int, command string) (child int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range tasks {
		text, _ := os.ReadFile(file)
		for id := range strings.FieldsSeq(string(text)) {
			args, _ := os.ReadFile("/proc/" + id + "/cmdline")
			if fields := strings.Split(string(args), "\x00"); len(fields) > 1 && fields[1] == command {
				child, _ = strconv.Atoi(id)
			}
		}
	}
	return child
}
