package budget

import (
	"cmp"
	"os"
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
	free, _ := statOf(m.files, "proc/meminfo")
	available = min(total, cmp.Or(free["MemAvailable"], total))
	levels, _ := groupLevels(m.files)
	limits, _ := groupLimits(m.files, levels, nil)
	for _, g := range limits {
		total = min(total, g.bytes)
		used, _ := g.used(m.files)
		available = min(available, max(g.bytes-used, 1)) // 0 is unknown
	}
	return total, available
}
