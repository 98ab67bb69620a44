//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vm

import "golang.org/x/sys/unix"

// mayGrowTo returns EFBIG for a file longer than RLIMIT_FSIZE. So does the system, but
// it sends SIGXFSZ too. Go programs ignore that; it ends a C program that Go is a
// library of.
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
