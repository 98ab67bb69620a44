package tempfile

import (
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// Link gives a file of [Unnamed] a name, which must be free. It needs /proc.
func Link(f *os.File, name string) error {
	defer runtime.KeepAlive(f)
	from := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	if err := unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW); err != nil {
		return &os.LinkError{Op: "linkat", Old: from, New: name, Err: err}
	}
	return nil
}
