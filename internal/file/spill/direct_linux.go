package spill

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// setDirect makes f bypass the page cache or, without direct, use it.
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

// freeSpace gives the disk space of [from, to) back, if the file system can.
func freeSpace(f *os.File, from, to int64) {
	defer runtime.KeepAlive(f)
	_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, to-from)
}
