// Resident: what the process holds, as the system counts it.

package budget

import (
	"io/fs"
	"strconv"
	"strings"
)

// residentOf returns the resident bytes that count against a limit: those of its cgroup, or
// of the process. It is 0 where the system does not tell.
func (m machine) residentOf(l limit) int64 {
	if l.group != nil {
		if n, ok := l.group.used(m.files); ok {
			return n
		}
	}
	n, _ := residentBytes(m.files)
	return n
}

// residentBytes returns the process's resident memory that is no file's: anonymous and
// shared memory. It reports false where the system does not tell.
func residentBytes(files fs.FS) (n int64, ok bool) {
	text, err := fs.ReadFile(files, "proc/self/status")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if name != "RssAnon" && name != "RssShmem" {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil || kib < 0 || kib >= noLimit>>10 {
			return 0, false
		}
		n += kib << 10
		ok = true
	}
	return n, ok
}
