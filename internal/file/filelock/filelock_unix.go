//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package filelock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold/internal/vm"
)

// Lock locks f until Unlock, or returns ErrInUse. A shared lock excludes only exclusive ones.
func Lock(f *os.File, shared bool) error {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	err := flock(f, how|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		return ErrInUse
	}
	return err
}

// Unlock ends the lock. Closing f might not: a child process has a copy of the descriptor from
// fork to exec, and shares the lock.
func Unlock(f *os.File) { _ = flock(f, unix.LOCK_UN) }

func flock(f *os.File, how int) error {
	defer runtime.KeepAlive(f)
	return unix.Flock(int(f.Fd()), how)
}

// SyncEntry writes the directory entry of the new file f to disk. A directory that may not be
// read cannot be synced; there it relies on the file system to write the entry with the file.
func SyncEntry(f *os.File) error {
	d, err := os.Open(filepath.Dir(f.Name()))
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	return vm.SyncFile(d)
}
