package atomicfile

import "golang.org/x/sys/unix"

// ofDescriptors reports whether the files of dir are descriptors of processes, or other
// files of the system that nothing can replace: dir is in /proc.
func ofDescriptors(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == unix.PROC_SUPER_MAGIC
}
