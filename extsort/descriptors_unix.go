//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package extsort

import (
	"math"

	"golang.org/x/sys/unix"
)

// freeDescriptors returns about how many more files the process may open: the lowest
// descriptor that is free counts those that are not.
func freeDescriptors() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxInt
	}
	const stdin = 0 // which the Go runtime opens if nobody has
	lowest, err := unix.FcntlInt(stdin, unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	_ = unix.Close(lowest)
	return int(min(uint64(limit.Cur), math.MaxInt32)) - lowest
}
