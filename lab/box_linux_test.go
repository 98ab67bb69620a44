package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// The load of a report that is killed ends with it, and the next report removes its control group.
func TestBoxEndsWithItsReport(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	box := with(tinyBox, "--box", "cgroup", "--with", "budget")
	report := exec.CommandContext(t.Context(), exe, with(box, "--hold", "1h", "--deadline", "2h")...)
	var said bytes.Buffer
	report.Stderr = &said
	if err := report.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- report.Wait() }()
	load, group := 0, ""
	for ; group == ""; time.Sleep(time.Millisecond) {
		select {
		case err := <-ended:
			if strings.Contains(said.String(), "no control group can be made") {
				t.Skip(said.String())
			}
			t.Fatalf("%v: %s", err, said.String())
		default:
		}
		load = childOf(report.Process.Pid, "child")
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", load))
		for line := range strings.Lines(string(text)) {
			if parts := strings.SplitN(strings.TrimSpace(line), ":", 3); strings.Contains(line, "/lab-box-") {
				group = filepath.Join("/sys/fs/cgroup", parts[1], parts[2]) // the controller of version 1 is a folder
			}
		}
	}
	if err := report.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	for running(load) || len(membersOf(group)) > 0 { // the kernel counts a process for a moment after its end
		time.Sleep(time.Millisecond)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(group, old, old); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := command(t.Context(), box...); code != cli.OK {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, err := os.Stat(group); err == nil {
		t.Error("the group that was left is still there")
	}
}

// running reports whether a process runs. Its parent may not have waited for it yet.
func running(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(text), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

func membersOf(group string) []byte {
	members, _ := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	return members
}
