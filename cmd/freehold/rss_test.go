package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestMachineMemoryIsTheContainers(t *testing.T) {
	before := containerMemory
	t.Cleanup(func() { containerMemory = before })
	containerMemory = func() (uint64, error) { return 0, errors.New("no control groups here") }
	machine, _ := machineMemory()
	if machine == 0 {
		t.Skip("this system does not say how much memory there is")
	}
	for _, tt := range []struct {
		limit uint64
		want  int64
	}{
		{64 << 20, 64 << 20},
		{1 << 62, machine}, // more than there is
		{1 << 63, machine}, // cgroup v1 says so for none
	} {
		containerMemory = func() (uint64, error) { return tt.limit, nil }
		total, available := machineMemory()
		if total != tt.want || available > total {
			t.Errorf("limit %d: %d bytes, %d available, want %d", tt.limit, total, available, tt.want)
		}
	}
}

// A group below the root has the limit; the root's own file has none.
func TestLimitOfANestedGroup(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("control groups are Linux's")
	}
	group, limitFile := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	if _, err := os.Stat(filepath.Join(group, limitFile)); err != nil {
		group, limitFile = "/sys/fs/cgroup", "memory.max"
	}
	group = filepath.Join(group, fmt.Sprintf("freehold-test-%d", os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("no control group can be made here: %v", err)
	}
	t.Cleanup(func() { os.Remove(group) })
	if err := os.WriteFile(filepath.Join(group, limitFile), []byte("268435456"), 0o644); err != nil {
		t.Skipf("no limit can be set here: %v", err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	code, _, errs := processOf(t, nil, "/bin/sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, group, exe, "memtest", "--high", "512MiB")
	if code != exitUsage || !strings.Contains(errs, "--high 512 MiB is more than this machine's 256 MiB of memory") {
		t.Errorf("exit code %d, %q", code, errs)
	}
}
