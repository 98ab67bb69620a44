package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// parentIgnores reports whether the parent process ignores a signal. A child inherits that, unless
// the parent resets it. The Go runtime overwrites the inherited state before a program's code runs,
// except for SIGHUP and SIGINT, so the parent's state is the best evidence.
func parentIgnores(s syscall.Signal) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", os.Getppid()))
	_, mask, _ := strings.Cut(string(status), "\nSigIgn:")
	mask, _, _ = strings.Cut(mask, "\n")
	ignored, _ := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
	return ignored>>(s-1)&1 != 0
}
