//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vm

import "golang.org/x/sys/unix"

// mayGrowTo returns EFBIG if a length exceeds RLIMIT_FSIZE. The system would return it too, but
// it also sends SIGXFSZ. Go programs ignore the signal; it kills a C program that uses Go as a
// library.
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
