package tempfile

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Unnamed returns a new file in dir that has no name unless Link gives it one. Some file systems
// do not support this. The file's Name method says that it has none.
func Unnamed(dir string, perm uint32) (*os.File, error) {
	for {
		fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, perm)
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), filepath.Join(dir, "(no name)")), nil
		case unix.EINTR:
		default:
			return nil, &os.PathError{Op: "open", Path: dir, Err: err}
		}
	}
}
