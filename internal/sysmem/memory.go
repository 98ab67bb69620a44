// Package sysmem reads the machine's memory and the memory limits of the process's cgroups.
package sysmem

import (
	"cmp"
	"io/fs"
)

// Memory returns the bytes that this process may use in all, and the bytes that are available
// now. Both respect the machine's memory and the limits of the process's cgroups. On systems
// other than Linux all memory counts as available. Both are 0 if the total is unknown.
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
		available = min(available, max(g.Bytes-used, 1)) // 0 would mean unknown
	}
	return total, available
}
