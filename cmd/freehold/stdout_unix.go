//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package main

import (
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// stdout returns standard output for sort. Where that is closed, the Go runtime has
// opened /dev/null for reading and writing instead, and the result would be lost without
// a word. A /dev/null that the caller has opened in both ways counts as closed too.
func stdout() io.Writer {
	info, err := os.Stdout.Stat()
	if err != nil {
		return os.Stdout
	}
	null, err := os.Stat(os.DevNull)
	if err != nil || !os.SameFile(info, null) {
		return os.Stdout
	}
	flags, err := unix.FcntlInt(os.Stdout.Fd(), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_ACCMODE != unix.O_RDWR {
		return os.Stdout
	}
	return closedOutput{}
}

type closedOutput struct{}

func (closedOutput) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: os.Stdout.Name(), Err: unix.EBADF}
}
