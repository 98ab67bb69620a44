//go:build linux && !race

package vm

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// addressesLeft returns the bytes of addresses that the process may still reserve.
func addressesLeft() uintptr {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &limit); err != nil || limit.Cur == unix.RLIM_INFINITY {
		return ^uintptr(0)
	}
	return uintptr(min(limit.Cur-min(limit.Cur, addressesTaken()), uint64(^uintptr(0))))
}

// addressesTaken returns the bytes of addresses that the process has, or 0 if unknown.
func addressesTaken() uint64 {
	statm, _ := os.ReadFile("/proc/self/statm") // its first field, in pages
	first, _, _ := bytes.Cut(statm, []byte(" "))
	pages, _ := strconv.ParseUint(string(first), 10, 64)
	return pages * uint64(os.Getpagesize())
}
