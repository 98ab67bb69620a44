//go:build linux && !race

package vm

import "golang.org/x/sys/unix"

// addressLimit returns how many bytes of addresses the process may have.
func addressLimit() uintptr {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &limit); err != nil {
		return ^uintptr(0)
	}
	return uintptr(min(limit.Cur, uint64(^uintptr(0))))
}
