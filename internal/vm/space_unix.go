//go:build linux || darwin || dragonfly || freebsd

package vm

import (
	"os"

	"golang.org/x/sys/unix"
)

// hasSpace reports whether f's file system has n free bytes. It reports true if the file system
// does not tell.
func hasSpace(f *os.File, n int64) bool {
	conn, err := f.SyscallConn()
	if err != nil {
		return true
	}
	var s unix.Statfs_t
	controlErr := conn.Control(func(fd uintptr) { err = unix.Fstatfs(int(fd), &s) })
	if controlErr != nil || err != nil || s.Bsize <= 0 || s.Blocks == 0 { // ramfs has no blocks
		return true
	}
	return uint64(n)/uint64(s.Bsize) <= uint64(s.Bavail)
}
