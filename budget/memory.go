package budget

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Memory returns how many bytes this process may have by the machine's memory and the limits
// of its cgroups, and how many of them are available now. On systems other than Linux all
// of them count as available. Both are 0 where the system does not tell.
func Memory() (total, available int64) {
	return machine{rootDirectory(), os.LookupEnv, physicalMemory}.memory()
}

func (m machine) memory() (total, available int64) {
	total, err := m.physical()
	if err != nil || total <= 0 {
		return 0, 0
	}
	available = min(total, cmp.Or(availableMemory(m.files), total))
	levels, _ := groupLevels(m.files)
	limits, _ := groupLimits(m.files, levels, nil)
	for _, g := range limits {
		total = min(total, g.bytes)
		used, _ := g.used(m.files)
		available = min(available, max(g.bytes-used, 1)) // 0 is unknown
	}
	return total, available
}

// availableMemory returns the memory that the machine has without swapping, 0 if it does not tell.
func availableMemory(files fs.FS) int64 {
	text, err := fs.ReadFile(files, "proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); n == 1 && kib > 0 && kib < noLimit>>10 {
			return kib << 10
		}
	}
	return 0
}
