package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The processes of a demo, and its control group.
type boxedDemo struct {
	demo        *exec.Cmd
	child, load int // their ids
	group       string
}

// startBoxedDemo starts a demo whose load holds its memory for longer than any test, and waits
// until the load is in its group.
func startBoxedDemo(t *testing.T) (d boxedDemo) {
	b, err := newBox(64 << 20)
	if errors.As(err, new(unavailableError)) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := b.remove(); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d.demo = exec.CommandContext(t.Context(), exe, "report", "budget", "--box", "cgroup", "--with", "budget",
		"--limits", "128MiB", "--shares", "30", "--go-live", "2MiB", "--hold", "1h", "--deadline", "2h")
	if err := d.demo.Start(); err != nil {
		t.Fatal(err)
	}
	d.child = awaitChild(t, d.demo.Process.Pid, "child")
	d.load = awaitChild(t, d.child, "boxload")
	await(t, func() bool {
		groups, _ := filepath.Glob(filepath.Join(filepath.Dir(b.dir), fmt.Sprintf("%s%d-*", boxPrefix, d.child)))
		if len(groups) == 0 {
			return false
		}
		d.group = groups[0]
		members, _ := os.ReadFile(filepath.Join(d.group, "cgroup.procs"))
		return strings.TrimSpace(string(members)) == strconv.Itoa(d.load)
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

// awaitChild returns the process that another has started with a command, once it has. Go's
// runtime starts short ones of its own.
func awaitChild(t *testing.T, pid int, command string) (child int) {
	await(t, func() bool {
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
		return child != 0
	})
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

// Nothing is left of a demo that is killed.
func TestBoxEndsWithItsDemo(t *testing.T) {
	d := startBoxedDemo(t)
	if err := d.demo.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = d.demo.Wait()
	awaitEnd(t, d.child)
	awaitEnd(t, d.load)
	if isThere(d.group) {
		t.Error("the control group is left")
	}
}

// So it is when the terminal of all its processes goes.
func TestBoxEndsWithItsTerminal(t *testing.T) {
	d := startBoxedDemo(t)
	for _, pid := range []int{d.child, d.load, d.demo.Process.Pid} {
		if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	_ = d.demo.Wait()
	awaitEnd(t, d.child)
	awaitEnd(t, d.load)
	if isThere(d.group) {
		t.Error("the control group is left")
	}
}

// The load ends with the process that watches it, and the next box removes what that one left.
func TestBoxOfAKilledChild(t *testing.T) {
	d := startBoxedDemo(t)
	if err := syscall.Kill(d.child, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := d.demo.Wait(); err == nil {
		t.Error("the demo lost its child, and says nothing")
	}
	awaitEnd(t, d.load)
	if !isThere(d.group) {
		t.Fatal("somebody removed the group")
	}
	await(t, func() bool { // the kernel counts a process for a moment after its end
		members, err := os.ReadFile(filepath.Join(d.group, "cgroup.procs"))
		return err == nil && len(members) == 0
	})
	b, err := newBox(64 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if isThere(d.group) {
		t.Error("the group that was left is still there")
	}
	if err := b.remove(); err != nil {
		t.Error(err)
	}
}
