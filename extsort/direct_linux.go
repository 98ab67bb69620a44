package extsort

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// setDirect makes f bypass the page cache, or use it.
func setDirect(f *os.File, direct bool) error {
	defer runtime.KeepAlive(f)
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	flags &^= unix.O_DIRECT
	if direct {
		flags |= unix.O_DIRECT
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags)
	return err
}
