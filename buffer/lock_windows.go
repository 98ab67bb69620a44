package buffer

import (
	"os"
	"runtime"

	"golang.org/x/sys/windows"
)

// lock keeps others from locking f until it is closed. Shared locks go together. It
// locks a byte far beyond the data, which others may still read.
func lock(f *os.File, shared bool) error {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if !shared {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	defer runtime.KeepAlive(f)
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
	if err == windows.ERROR_LOCK_VIOLATION {
		return errInUse
	}
	return err
}

func unlock(*os.File) {} // no child inherits the handle: closing it unlocks

func syncEntry(*os.File) error { return nil }
