package extsort

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// control calls f with the descriptor.
func control(file *os.File, f func(fd int) error) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	controlErr := conn.Control(func(fd uintptr) { err = f(int(fd)) })
	if controlErr != nil {
		return controlErr
	}
	return err
}

// setDirect makes f bypass the page cache, or use it.
func setDirect(f *os.File, direct bool) error {
	return control(f, func(fd int) error {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil {
			return err
		}
		flags &^= unix.O_DIRECT
		if direct {
			flags |= unix.O_DIRECT
		}
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags)
		return err
	})
}

// link gives a file of openUnnamed a name, which must be free.
func link(f *os.File, name string) error {
	return control(f, func(fd int) error {
		return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
	})
}

// keepOwner gives f the owner of another file, if that is allowed.
func keepOwner(f *os.File, of os.FileInfo) {
	if st, ok := of.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(st.Uid), int(st.Gid))
	}
}
