// The machine's memory and this process's share of it, on every system that
// gopsutil knows; what a system does not tell is 0.

package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v4/mem"
	"github.com/shirou/gopsutil/v4/process"
)

// self is this process, nil where the system does not tell.
var self = func() *process.Process {
	p, err := process.NewProcess(int32(os.Getpid()))
	if err != nil {
		return nil
	}
	return p
}()

// residentBytes returns this process's resident memory. About 10 us on Linux.
func residentBytes() int64 {
	if self == nil {
		return 0
	}
	info, err := self.MemoryInfo()
	if err != nil {
		return 0
	}
	return int64(info.RSS)
}

// machineMemory returns the bytes of memory that this process could ever have,
// which a container may limit, and those available now.
func machineMemory() (total, available int64) {
	v, err := mem.VirtualMemory()
	if err != nil {
		return 0, 0
	}
	total, available = int64(v.Total), int64(v.Available)
	if limit := cgroupLimit(); limit > 0 {
		total = min(total, limit)
		available = min(available, limit)
	}
	return total, available
}

// cgroupLimit returns the memory limit of the container's own cgroup, 0 if none.
func cgroupLimit() int64 {
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			return n
		}
	}
	return 0
}

// machineText describes the machine in a line, for reports.
func machineText() string {
	total, _ := machineMemory()
	text := fmt.Sprintf("%s %s/%s, %d processors, %s memory",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), sizeText(total))
	if mode := hugePageMode(); mode != "" {
		text += ", huge pages: " + mode
	}
	return text
}

// hugePageMode returns the kernel's setting for transparent huge pages, which
// changes resident memory; "" where there is none.
func hugePageMode() string {
	text, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), "[")
	mode, _, _ := strings.Cut(rest, "]")
	return mode
}
