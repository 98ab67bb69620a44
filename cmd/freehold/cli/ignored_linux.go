package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// parentIgnores reports whether the parent process ignores a signal, as its children then do
// unless it resets that for them. It stands for what this process has inherited, which the
// Go runtime overwrites for all signals but SIGHUP and SIGINT before any code of a program runs.
func parentIgnores(s syscall.Signal) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", os.Getppid()))
	_, mask, _ := strings.Cut(string(status), "\nSigIgn:")
	mask, _, _ = strings.Cut(mask, "\n")
	ignored, _ := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
	return ignored>>(s-1)&1 != 0
}
