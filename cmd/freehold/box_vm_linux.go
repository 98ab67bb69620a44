package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// endWithParent has a program killed when the thread that starts it ends.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// boxVMCommand is the first process of a virtual machine: see box_vm.go.
type boxVMCommand struct{}

// Run measures, and turns the machine off.
func (*boxVMCommand) Run(ctx context.Context, s streams) error {
	if os.Getpid() != 1 {
		return usagef("boxvm is a virtual machine's first process")
	}
	if err := bootVM(ctx, s); err != nil {
		fmt.Fprintln(s.err, "freehold:", err)
	}
	syscall.Sync()
	return syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF)
}

// bootVM mounts what a run needs, and runs it.
func bootVM(ctx context.Context, s streams) error {
	for _, m := range []struct{ kind, dir string }{
		{"devtmpfs", "/dev"}, {"proc", "/proc"}, {"sysfs", "/sys"}, {"tmpfs", "/tmp"}, {"cgroup2", "/sys/fs/cgroup"},
	} {
		if err := errors.Join(os.MkdirAll(m.dir, 0o755), syscall.Mount(m.kind, m.dir, m.kind, 0, "")); err != nil {
			return fmt.Errorf("mounting %s: %w", m.dir, err)
		}
	}
	out, err := os.OpenFile("/dev/ttyS1", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer out.Close()
	text, err := os.ReadFile("/" + vmBoxFile)
	if err != nil {
		return err
	}
	var job vmJob
	if err := json.Unmarshal(text, &job); err != nil {
		return err
	}
	set, err := json.Marshal(settings{Box: job.Settings})
	if err != nil {
		return err
	}
	child := childCommand{Story: budgetStory{}.name(), Backend: job.Run, Settings: string(set)}
	return child.Run(ctx, streams{out: out, err: s.err})
}
