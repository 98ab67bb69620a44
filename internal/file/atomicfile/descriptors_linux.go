package atomicfile

import "golang.org/x/sys/unix"

// ofDescriptors reports whether dir is in /proc. Its files are descriptors of processes or other
// system files, which no file replaces.
func ofDescriptors(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == unix.PROC_SUPER_MAGIC
}

// isMount reports whether the file at path is a mount point: the system renames nothing over it.
// A kernel before 5.8 does not tell, so isMount then reports false.
func isMount(path string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, 0, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
