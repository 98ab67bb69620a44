// Rooms: directories with a limit in bytes.

//go:build linux

package faults

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A Room is a directory in which files can be written up to a limit.
type Room struct {
	Dir  string
	Full error // what the system says at the limit
	disk bool  // the limit is that of all files together, else of each
}

const inChild = "FREEHOLD_FAULTS_CHILD"

// Isolated runs the test again in a child process with mounts of its own, and fails
// if the child fails or dies. It reports whether this process is the child, in which
// the test is to go on. Where no such child can be started it skips the test.
func Isolated(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inChild) != "" {
		return true
	}
	var failed error
	for _, user := range []bool{false, true} {
		cmd := again(t)
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		if user { // who is not root is root in a namespace
			cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
		}
		if failed = cmd.Start(); failed == nil {
			finish(t, cmd)
			return false
		}
	}
	t.Skip("SKIPPED, no disk was filled: this process may not mount one: ", failed)
	return false
}

// Restricted is Isolated for a child that limits itself and mounts nothing.
func Restricted(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inChild) != "" {
		return true
	}
	cmd := again(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	finish(t, cmd)
	return false
}

// again returns the command that runs a test in a process of its own.
func again(t *testing.T) *exec.Cmd {
	args := []string{"-test.run=^" + t.Name() + "$", "-test.v", fmt.Sprint("-test.short=", testing.Short()), fmt.Sprint("-seed=", Seed())}
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "fills" || f.Name == "kills" {
			args = append(args, fmt.Sprintf("-%s=%s", f.Name, f.Value))
		}
	})
	cmd := Self(t, args...)
	cmd.Env = append(cmd.Env, inChild+"=1")
	cmd.Stdout = &bytes.Buffer{}
	cmd.Stderr = os.Stderr
	return cmd
}

// Self returns a command that runs the program of this test.
func Self(t *testing.T, args ...string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = os.Environ()
	return cmd
}

// finish waits for the child and passes on its log.
func finish(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	err := cmd.Wait()
	for _, line := range strings.Split(fmt.Sprint(cmd.Stdout), "\n") {
		line = strings.TrimSpace(line)
		if where, text, ok := strings.Cut(line, ": "); ok && strings.Contains(where, ".go:") {
			t.Log(text)
		} else if err != nil {
			t.Log(line)
		}
	}
	if err != nil {
		t.Errorf("the child: %v", err)
	}
}

// NewDisk mounts a disk, which lasts as long as the process. Isolated must have
// returned true.
func NewDisk(t *testing.T) *Room {
	r := &Room{Dir: t.TempDir(), Full: unix.ENOSPC, disk: true}
	if err := unix.Mount("none", r.Dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("SKIPPED, no disk was filled: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(r.Dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return r
}

// NewSizeLimit returns a directory whose limit holds for each file. It holds for all files of the
// process.
func NewSizeLimit(t *testing.T) *Room { return &Room{Dir: t.TempDir(), Full: unix.EFBIG} }

// Limit sets the limit, which must not be less than the bytes in use.
func (r *Room) Limit(t *testing.T, bytes int) {
	t.Helper()
	var err error
	if r.disk {
		err = unix.Mount("none", r.Dir, "tmpfs", unix.MS_REMOUNT, fmt.Sprint("size=", bytes))
	} else {
		var limit unix.Rlimit
		if err = unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err == nil {
			limit.Cur = min(uint64(bytes), limit.Max)
			err = unix.Setrlimit(unix.RLIMIT_FSIZE, &limit)
		}
	}
	if err != nil {
		t.Fatal("limit of ", bytes, " bytes: ", err)
	}
}

// Each reports whether the limit holds for each file, not for all together.
func (r *Room) Each() bool { return !r.disk }

// WantEmpty checks that no file is left except the named ones. Without names it also checks that no
// disk space is in use, for example by files without a name.
func (r *Room) WantEmpty(t *testing.T, but ...string) {
	t.Helper()
	files, err := os.ReadDir(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		known := false
		for _, name := range but {
			known = known || f.Name() == name
		}
		if !known {
			t.Errorf("%s was left behind", f.Name())
		}
	}
	if !r.disk || len(files) > 0 {
		return
	}
	var st unix.Statfs_t
	if err := unix.Statfs(r.Dir, &st); err != nil {
		t.Fatal(err)
	}
	if st.Bfree != st.Blocks {
		t.Errorf("%d pages of the disk are in use by files without a name", st.Blocks-st.Bfree)
	}
}

// WantFull checks that err says that the room is full.
func (r *Room) WantFull(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, r.Full) {
		t.Errorf("error %v, want one that matches %q", err, r.Full)
	}
}
