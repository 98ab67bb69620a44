package vm

import (
	"os"

	"golang.org/x/sys/unix"
)

// allocateFile is ExtendFile's system call. Its error matches ErrUnsupported where
// the file system has none.
func allocateFile(f *os.File, from, to int64) error {
	info, err := f.Stat()
	if err != nil || info.Size() >= to {
		return err
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	store := unix.Fstore_t{Flags: unix.F_ALLOCATEALL, Posmode: unix.F_PEOFPOSMODE, Length: to - info.Size()}
	controlErr := conn.Control(func(fd uintptr) { err = unix.FcntlFstore(fd, unix.F_PREALLOCATE, &store) })
	if controlErr != nil {
		return controlErr
	}
	if err != nil {
		return err
	}
	return f.Truncate(to)
}
