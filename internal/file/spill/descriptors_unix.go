//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package spill

import (
	"math"

	"golang.org/x/sys/unix"
)

// FreeDescriptors returns about how many more files the process may open. It assumes that all
// descriptors below the lowest free one are open, and no others.
func FreeDescriptors() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxInt
	}
	const stdin = 0 // always open: the Go runtime opens it if it is closed
	lowest, err := unix.FcntlInt(stdin, unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	_ = unix.Close(lowest)
	return int(min(uint64(limit.Cur), math.MaxInt32)) - lowest
}
