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

// The processes of a report, and its control group.
type boxedReport struct {
	report      *exec.Cmd
	child, load int // their ids
	group       string
	wait        func() error
}

// startBoxed starts a report whose load holds its memory for longer than any test, and waits
// until the load is in its group.
func startBoxed(t *testing.T) (d boxedReport) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d.report = exec.CommandContext(t.Context(), exe, "report", "budget", "--box", "cgroup", "--with", "budget",
		"--limits", "128MiB", "--shares", "30", "--go-live", "2MiB", "--hold", "1h", "--deadline", "2h")
	var said bytes.Buffer
	d.report.Stderr = &said
	if err := d.report.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- d.report.Wait() }()
	d.wait = func() error { return <-ended }
	await(t, func() bool {
		select {
		case err := <-ended:
			if strings.Contains(said.String(), "no control group can be made") {
				t.Skip(said.String())
			}
			t.Fatalf("%v: %s", err, said.String())
		default:
		}
		if d.child = childOf(d.report.Process.Pid, "child"); d.child != 0 {
			d.load = childOf(d.child, "boxload")
		}
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", d.load))
		for line := range strings.Lines(string(text)) {
			if parts := strings.SplitN(strings.TrimSpace(line), ":", 3); strings.Contains(line, "/lab-box-") {
				d.group = filepath.Join("/sys/fs/cgroup", parts[1], parts[2]) // the controller of version 1 is a folder
			}
		}
		return d.group != ""
	})
	return d
}

// await waits until something is so.
func await(t *testing.T, so func() bool) {
	t.Helper()
	for !so() {
		if t.Context().Err() != nil {
			t.Fatal("the test ended before")
		}
		time.Sleep(time.Millisecond)
	}
}

// childOf returns the process that another has started with a command, 0 if there is none. Go's
// runtime starts short ones of its own.
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

// awaitEnd waits until a process runs no longer; nobody may have asked yet how it ended.
func awaitEnd(t *testing.T, pid int) {
	await(t, func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, state, _ := strings.Cut(string(text), ") ")
		return err != nil || strings.HasPrefix(state, "Z")
	})
}

func isThere(file string) bool { _, err := os.Stat(file); return err == nil }

// Nothing is left of a report that is killed.
func TestBoxEndsWithItsReport(t *testing.T) {
	d := startBoxed(t)
	if err := d.report.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = d.wait()
	awaitEnd(t, d.child)
	awaitEnd(t, d.load)
	if isThere(d.group) {
		t.Error("the control group is left")
	}
}

// So it is when the terminal of all its processes goes.
func TestBoxEndsWithItsTerminal(t *testing.T) {
	d := startBoxed(t)
	for _, pid := range []int{d.child, d.load, d.report.Process.Pid} {
		if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	_ = d.wait()
	awaitEnd(t, d.child)
	awaitEnd(t, d.load)
	if isThere(d.group) {
		t.Error("the control group is left")
	}
}

// The load ends with the process that watches it, and the next box removes what that one left.
func TestBoxOfAKilledChild(t *testing.T) {
	d := startBoxed(t)
	if err := syscall.Kill(d.child, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := d.wait(); err == nil {
		t.Error("the report lost its child, and says nothing")
	}
	awaitEnd(t, d.load)
	if !isThere(d.group) {
		t.Fatal("somebody removed the group")
	}
	await(t, func() bool { // the kernel counts a process for a moment after its end
		members, err := os.ReadFile(filepath.Join(d.group, "cgroup.procs"))
		return err == nil && len(members) == 0
	})
	code, _, errs := command(t.Context(), with(tinyBox, "--box", "cgroup", "--with", "budget")...)
	if code != cli.OK {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if isThere(d.group) {
		t.Error("the group that was left is still there")
	}
}
