package run

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/shirou/gopsutil/v4/process"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/internal/sysmem"
)

// Resident returns this process's resident memory, 0 where the system does not tell. About 10 us
// on Linux.
func Resident() int64 {
	info, err := (&process.Process{Pid: int32(os.Getpid())}).MemoryInfo()
	if err != nil {
		return 0
	}
	return int64(info.RSS)
}

// MachineText describes the machine in a line, for reports. The kernel's setting for transparent
// huge pages changes resident memory.
func MachineText() string {
	total, _ := sysmem.Memory()
	text := fmt.Sprintf("%s %s/%s, %d processors, %s memory",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), cli.Bytes(total))
	pages, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if _, rest, ok := strings.Cut(string(pages), "["); ok {
		mode, _, _ := strings.Cut(rest, "]")
		text += ", huge pages: " + mode
	}
	return text
}

// DieFirst asks Linux to end this process before all others when memory runs out.
func DieFirst() { _ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) }
