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

// Where somebody has set the monitor's variable, programs run as ever, and without a monitor.
func TestVariableOfTheMonitorIsSet(t *testing.T) {
	for _, value := range []string{"1", "launch", "watch"} {
		out := run(os.Args[0], "recovered", "FREEHOLD_MONITOR="+value)
		mustMatch(t, out, `^freehold: FREEHOLD_DEBUG: guard: faults are not explained: the environment has FREEHOLD_MONITOR.*\nuse after free at`)
		mustMatch(t, run(os.Args[0], "program", "FREEHOLD_DEBUG=", "FREEHOLD_MONITOR="+value), `^the environment has FREEHOLD_MONITOR`, `unexpected fault address`)
	}
}

// A monitor that somebody has stopped does not keep the program from dying. Process 1 has a
// little patience with each piece of its text.
func TestStoppedMonitor(t *testing.T) {
	mustDie(t, command("stopped monitor", os.Args[0], "GOTRACEBACK=all"), true)
	if testing.Short() {
		return // it takes some ten seconds
	}
	inside := []string{"--user", "--pid", "--fork", "--kill-child", "--mount-proc", os.Args[0]}
	if err := command("none", "unshare", inside...).Run(); err != nil {
		t.Skip("no namespaces: ", err)
	}
	mustDie(t, command("stopped monitor", "unshare", inside...), false)
}

// mustDie fails the test unless a program ends that has printed its monitor's number and
// faults. If the monitor is to report, that is continued in the end.
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

// The monitor is not the program's child, so it is no zombie of what the program becomes.
func TestMonitorIsNobodysChild(t *testing.T) {
	mustMatch(t, run(os.Args[0], "exec"), `^children: no child processes\n$`)
}
