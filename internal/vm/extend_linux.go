package vm

import (
	"os"

	"golang.org/x/sys/unix"
)

// allocateFile is ExtendFile's system call. Its error matches ErrUnsupported where
// the file system has none.
func allocateFile(f *os.File, from, to int64) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	controlErr := conn.Control(func(fd uintptr) { err = unix.Fallocate(int(fd), 0, from, to-from) })
	if controlErr != nil {
		return controlErr
	}
	return err
}
