package cmalloc_test

import (
	"fmt"
	"os"
	"syscall"
)

const canLimit = true

// limitAddressSpace limits the address space to the mapped bytes and the given number of
// bytes. It returns the limit.
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
