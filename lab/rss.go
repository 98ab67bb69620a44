// The machine's memory and this process's share of it, on every system that
// gopsutil knows; what a system does not tell is 0.

package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
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
var machineMemory = budget.Memory

// machineText describes the machine in a line, for reports.
func machineText() string {
	total, _ := machineMemory()
	text := fmt.Sprintf("%s %s/%s, %d processors, %s memory",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), cli.Bytes(total))
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
