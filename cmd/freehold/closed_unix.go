//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// closed reports whether a standard stream was closed when the process began. Before any code of a
// program runs, the Go runtime opens /dev/null for reading and writing in its place, so data would
// be lost without an error. A /dev/null that the caller has opened for both looks the same, and
// counts as closed.
func closed(stream *os.File) bool {
	info, err := stream.Stat()
	if err != nil {
		return false
	}
	null, err := os.Stat(os.DevNull)
	if err != nil || !os.SameFile(info, null) {
		return false
	}
	flags, err := unix.FcntlInt(stream.Fd(), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDWR
}
