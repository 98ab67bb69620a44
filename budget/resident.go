// Resident: what the process holds, as the system counts it.

package budget

import "io/fs"

// residentOf returns the resident bytes that count against a limit: those of its cgroup, or
// of the process. It is 0 where the system does not tell.
func (m machine) residentOf(l limit) int64 {
	if l.group != nil {
		if n, ok := l.group.used(m.files); ok {
			return n
		}
	}
	return residentBytes(m.files)
}

// residentBytes returns the process's resident memory that is no file's: anonymous and
// shared memory. It is 0 where the system does not tell.
func residentBytes(files fs.FS) int64 {
	stat, _ := statOf(files, "proc/self/status")
	return stat["RssAnon"] + stat["RssShmem"]
}
