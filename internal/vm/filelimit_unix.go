//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vm

import "golang.org/x/sys/unix"

// mayGrowTo returns EFBIG for a file longer than RLIMIT_FSIZE. The system would
// send SIGXFSZ too, which ends a Go process.
func mayGrowTo(size int64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return nil
	}
	if uint64(size) > uint64(limit.Cur) {
		return unix.EFBIG
	}
	return nil
}
