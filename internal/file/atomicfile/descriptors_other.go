//go:build !linux

package atomicfile

// ofDescriptors reports whether the files of dir are descriptors of the process.
func ofDescriptors(dir string) bool { return dir == "/dev/fd/" }
