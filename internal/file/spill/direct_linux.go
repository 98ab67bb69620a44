package spill

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// setDirect turns direct access of f, past the page cache, on or off.
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

// freeSpace returns the disk space of [from, to) to the file system, if it can.
func freeSpace(f *os.File, from, to int64) {
	defer runtime.KeepAlive(f)
	_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, to-from)
}
