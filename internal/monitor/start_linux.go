package monitor

import (
	"errors"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold/internal/guardlog"
)

// variable is set in the environment of the monitor. A process that has it never gets to
// main, where it would start a monitor of its own.
const variable = "FREEHOLD_MONITOR"

// The monitor's files, behind the standard ones.
const (
	crashFile = 3
	logFile   = 4
)

func init() {
	if os.Getenv(variable) == "" {
		return
	}
	log, err := guardlog.Map(os.NewFile(logFile, "log"))
	if err != nil {
		os.Exit(1)
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	watch(os.NewFile(crashFile, "crash"), log, os.Stderr, os.Getppid() == 1)
	os.Exit(0)
}

var start = sync.OnceValue(startOnce)

// Start starts the monitor, unless it was started before. It ends with this process. Start
// takes the process's crash output: debug.SetCrashOutput.
func Start() error { return start() }

func startOnce() error {
	log := guardlog.Open()
	if log == nil {
		return errors.New("there is no shared memory")
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socketpair", err)
	}
	crash, far := os.NewFile(uintptr(pair[0]), "crash"), os.NewFile(uintptr(pair[1]), "monitor")
	defer crash.Close() // SetCrashOutput has a copy
	defer far.Close()
	if os.Getpid() == 1 { // else there is no need to wait: a long crash text takes some times as long
		if err := unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 1); err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
	}
	monitor, err := os.StartProcess("/proc/self/exe", []string{"freehold-monitor"}, &os.ProcAttr{
		Env:   append(os.Environ(), variable+"=1", "GOGC=off", "FREEHOLD_DEBUG="),
		Files: []*os.File{nil, nil, os.Stderr, far, log},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err
	}
	if err := debug.SetCrashOutput(crash, debug.CrashOptions{}); err != nil {
		return err
	}
	return monitor.Release()
}
