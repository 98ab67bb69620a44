// macOS and the BSDs support the five advices of POSIX.

//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package vm

import "golang.org/x/sys/unix"

var advices = [numAdvices]int{
	Normal:     unix.MADV_NORMAL,
	Sequential: unix.MADV_SEQUENTIAL,
	Random:     unix.MADV_RANDOM,
	WillNeed:   unix.MADV_WILLNEED,
	DontNeed:   unix.MADV_DONTNEED,
	Populate:   none,
	HugePages:  none,
	Guard:      none,
	Unguard:    none,
}
