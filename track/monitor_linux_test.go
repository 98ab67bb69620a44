//go:build !race

package track_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// If FREEHOLD_MONITOR is set already, programs run as usual, without a monitor.
func TestVariableOfTheMonitorIsSet(t *testing.T) {
	for _, value := range []string{"1", "launch", "watch"} {
		out := run(os.Args[0], "recovered", "FREEHOLD_MONITOR="+value)
		mustMatch(t, out, `^freehold: FREEHOLD_DEBUG: guard: faults are not explained: the environment has FREEHOLD_MONITOR.*\nuse after free at`)
		mustMatch(t, run(os.Args[0], "program", "FREEHOLD_DEBUG=", "FREEHOLD_MONITOR="+value), `^the environment has FREEHOLD_MONITOR`, `unexpected fault address`)
	}
}

// A program dies even if its monitor is stopped. Process 1 waits a little at each write of its
// crash text.
func TestStoppedMonitor(t *testing.T) {
	mustDie(t, command("stopped monitor", os.Args[0], "GOTRACEBACK=all"), true)
	if testing.Short() {
		return // it takes about ten seconds
	}
	inside := []string{"--user", "--pid", "--fork", "--kill-child", "--mount-proc", os.Args[0]}
	if err := command("none", "unshare", inside...).Run(); err != nil {
		t.Skip("no namespaces: ", err)
	}
	mustDie(t, command("stopped monitor", "unshare", inside...), false)
}

// mustDie checks that a program ends that prints its monitor's process ID and then faults. If
// reports is true, mustDie resumes the monitor after that and checks its report.
func mustDie(t *testing.T, cmd *exec.Cmd, reports bool) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	stdout := new(strings.Builder)
	cmd.Stdout, cmd.Stderr = stdout, write
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = cmd.Start()
	write.Close()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	text := make(chan string)
	go func() {
		var all strings.Builder
		for lines := bufio.NewScanner(read); lines.Scan(); {
			all.WriteString(lines.Text() + "\n")
		}
		text <- all.String()
	}()
	cmd.Wait()
	if !stop() {
		t.Errorf("the program did not end")
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(stdout.String())); err != nil {
		t.Errorf("%q", stdout)
	} else if reports {
		syscall.Kill(pid, syscall.SIGCONT)
	}
	if out := <-text; reports {
		mustMatch(t, out, `unexpected fault address`, `\nfreehold: use after free at 0x\w+: byte 8 `+ofBlock+madeAt+freedAt)
	}
}

// The monitor is not the program's child, so it leaves no zombie after an exec.
func TestMonitorIsNobodysChild(t *testing.T) {
	mustMatch(t, run(os.Args[0], "exec"), `^children: no child processes\n$`)
}
