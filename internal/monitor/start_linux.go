package monitor

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold/internal/guardlog"
)

// A monitor's argument 0 is name, and the value of variable is its role. A process that has
// the variable never starts a monitor, so monitors cannot start one another without end.
const (
	name     = "freehold-monitor"
	variable = "FREEHOLD_MONITOR"
)

// The roles.
const (
	launcher    = "launch"        // starts a monitor and exits, so the monitor becomes an orphan
	atEnd       = "watch"         // prints the report when the crash text has ended
	immediately = "watch at once" // prints the report before it reads on
)

// The monitor's files, behind the standard ones.
const (
	crashFile = 3
	logFile   = 4
)

const (
	// pipeBytes is the pipe's buffer. Crash text beyond it may be lost if the monitor has
	// not read yet. The address is in the first lines.
	pipeBytes = 1 << 20

	// socketBytes is the buffer of process 1's socket, in setsockopt's unit. The kernel counts
	// its own overhead too, so the buffer holds about 80 writes. The crash text of a fault takes
	// hundreds, and the address is in the first 20. So the address is never lost, and the
	// process fills the buffer and waits before it has written all.
	socketBytes = 32 << 10

	// socketWait is the longest time that a write of process 1 waits for room.
	socketWait = 10 * time.Millisecond
)

func init() {
	if role := os.Getenv(variable); role != "" && len(os.Args) > 0 && os.Args[0] == name {
		os.Exit(serve(role))
	}
}

// serve is main of a monitor. It returns the exit status.
func serve(role string) int {
	crash, logged := os.NewFile(crashFile, "crash"), os.NewFile(logFile, "log")
	if role == launcher {
		if _, err := launch(atEnd, crash, logged); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	log, err := guardlog.Map(logged)
	if err != nil {
		return 1
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	watch(crash, log, os.Stderr, role == immediately)
	return 0
}

// launch starts this executable again in a role.
func launch(role string, crash, log *os.File) (*os.Process, error) {
	return os.StartProcess("/proc/self/exe", []string{name}, &os.ProcAttr{
		Env:   environment(os.Environ(), variable+"="+role, "GOGC=off", "FREEHOLD_DEBUG="),
		Files: []*os.File{nil, nil, os.Stderr, crash, log},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
}

// environment returns the given environment with some variables replaced. The new ones come
// first: Go takes the first of two definitions.
func environment(given []string, others ...string) []string {
	all := others
	for _, v := range given {
		key, _, _ := strings.Cut(v, "=")
		if !hasKey(others, key) {
			all = append(all, v)
		}
	}
	return all
}

func hasKey(vars []string, key string) bool {
	for _, v := range vars {
		if strings.HasPrefix(v, key+"=") {
			return true
		}
	}
	return false
}

var start = sync.OnceValue(startOnce)

// Start starts the monitor, once for each process. The monitor ends with this process. Start
// replaces the file of debug.SetCrashOutput.
func Start() error { return start() }

func startOnce() error {
	if os.Getenv(variable) != "" {
		return errors.New("the environment has " + variable + ", so this may be a monitor")
	}
	log := guardlog.Open()
	if log == nil {
		return errors.New("there is no shared memory")
	}
	crash, far, err := crashFiles()
	if err != nil {
		return err
	}
	defer crash.Close() // SetCrashOutput has a copy
	defer far.Close()
	if err := launchFor(os.Getpid(), far, log); err != nil {
		return err
	}
	if err := debug.SetCrashOutput(crash, debug.CrashOptions{}); err != nil {
		return err
	}
	if os.Getpid() != 1 {
		return unix.SetNonblock(int(crash.Fd()), true) // SetCrashOutput's copy shares the mode
	}
	return nil
}

// launchFor starts the monitor of this process, whose ID is pid. A launcher in between makes
// the monitor an orphan, so this process need not wait for it, even after an exec. Process 1
// inherits all orphans, so it starts the monitor directly.
func launchFor(pid int, crash, log *os.File) error {
	if pid == 1 {
		monitor, err := launch(immediately, crash, log)
		if err == nil {
			go monitor.Wait()
		}
		return err
	}
	first, err := launch(launcher, crash, log)
	if err != nil {
		return err
	}
	state, err := first.Wait()
	if err == nil && !state.Success() {
		err = fmt.Errorf("the monitor: %v", state)
	}
	return err
}

// crashFiles returns the file for the crash text and the monitor's end of it. A monitor that
// hangs does not block the crash: writes to the pipe never wait, and writes to process 1's
// socket wait at most socketWait.
func crashFiles() (crash, far *os.File, err error) {
	if os.Getpid() == 1 {
		return socketFiles()
	}
	far, crash, err = os.Pipe()
	if err == nil {
		unix.FcntlInt(crash.Fd(), unix.F_SETPIPE_SZ, pipeBytes) // else it is 64 KiB
	}
	return crash, far, err
}

// socketFiles is crashFiles of process 1.
func socketFiles() (crash, far *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	crash, far = os.NewFile(uintptr(pair[0]), "crash"), os.NewFile(uintptr(pair[1]), "monitor")
	wait := unix.NsecToTimeval(socketWait.Nanoseconds())
	err = errors.Join(
		os.NewSyscallError("setsockopt", unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_SNDBUF, socketBytes)),
		os.NewSyscallError("setsockopt", unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait)))
	if err != nil {
		crash.Close()
		far.Close()
	}
	return crash, far, err
}
