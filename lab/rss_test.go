package main

import (
	"fmt"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

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
	if code != cli.Misused || !strings.Contains(errs, "--high 512 MiB is more than this machine's 256 MiB of memory") {
		t.Errorf("exit code %d, %q", code, errs)
	}
}
