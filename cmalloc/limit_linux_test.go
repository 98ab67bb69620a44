package cmalloc_test

import (
	"fmt"
	"os"
	"syscall"
)

const canLimit = true

// limitAddressSpace leaves room for so many bytes beyond what is mapped now, and
// returns the limit that this makes, in bytes.
func limitAddressSpace(room uint64) (limit uint64, err error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var pages uint64
	if _, err := fmt.Sscan(string(text), &pages); err != nil {
		return 0, err
	}
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &r); err != nil {
		return 0, err
	}
	r.Cur = pages*uint64(os.Getpagesize()) + room
	return r.Cur, syscall.Setrlimit(syscall.RLIMIT_AS, &r)
}
