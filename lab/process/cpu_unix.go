//go:build unix

package process

import "syscall"

// CPUTime returns the processor time that this process has used, in ns.
func CPUTime() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
