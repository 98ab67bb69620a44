//go:build !linux

package atomicfile

// ofDescriptors reports whether the files of dir are descriptors of the process.
func ofDescriptors(dir string) bool { return dir == "/dev/fd/" }

// isMount reports whether the file at path is a mount point: other systems have no such files.
func isMount(string) bool { return false }
