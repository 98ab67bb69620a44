//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package buffer

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock keeps others from locking f until f is closed. Shared locks go together.
func lock(f *os.File, shared bool) error {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	controlErr := conn.Control(func(fd uintptr) { err = unix.Flock(int(fd), how|unix.LOCK_NB) })
	if controlErr != nil {
		return controlErr
	}
	if err == unix.EWOULDBLOCK {
		return errInUse
	}
	return err
}

// syncDir writes a directory's entries to disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
