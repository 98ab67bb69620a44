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

// SyncEntry writes the directory entry of the new file at path to disk. A directory that may not be
// read cannot be synced, nor one of some file systems, which return EINVAL. There SyncEntry relies on
// the file system to write the entry with the file.
func SyncEntry(path string) error {
	dir, _ := filepath.Split(path) // filepath.Dir would clean it
	if dir == "" {
		dir = "."
	}
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	if err := vm.SyncFile(d); !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}
