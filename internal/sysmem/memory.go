// Package sysmem reads what the system tells of memory: the machine's, and that of the process's cgroups.
package sysmem

import (
	"cmp"
	"io/fs"
)

// Memory returns how many bytes this process may have by the machine's memory and the limits
// of its cgroups, and how many of them are available now. On systems other than Linux all
// of them count as available. Both are 0 where the system does not tell.
func Memory() (total, available int64) { return MemoryOf(Root(), Physical) }

// MemoryOf is Memory of another root directory and machine.
func MemoryOf(files fs.FS, physical func() (int64, error)) (total, available int64) {
	total, err := physical()
	if err != nil || total <= 0 {
		return 0, 0
	}
	free, _ := Stat(files, "proc/meminfo")
	available = min(total, cmp.Or(free["MemAvailable"], total))
	levels, _ := Levels(files)
	limits, _ := Limits(files, levels, nil)
	for _, g := range limits {
		total = min(total, g.Bytes)
		used, _ := g.Used(files)
		available = min(available, max(g.Bytes-used, 1)) // 0 is unknown
	}
	return total, available
}
