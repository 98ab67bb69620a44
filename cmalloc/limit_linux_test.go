package cmalloc_test

import (
	"fmt"
	"os"
	"syscall"
)

const canLimit = true

// limitAddressSpace leaves room for so many bytes beyond what is mapped now.
func limitAddressSpace(room uint64) error {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	var pages uint64
	if _, err := fmt.Sscan(string(text), &pages); err != nil {
		return err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &limit); err != nil {
		return err
	}
	limit.Cur = pages*uint64(os.Getpagesize()) + room
	return syscall.Setrlimit(syscall.RLIMIT_AS, &limit)
}
