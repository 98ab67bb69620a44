// Standard streams that are closed.

package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// stdin and stdout return the standard streams. If one is closed, each Read or Write of it is an
// error, so that no command loses data.
func stdin() io.Reader {
	if closed(os.Stdin) {
		return closedStream{os.Stdin}
	}
	return os.Stdin
}

func stdout() io.Writer {
	if closed(os.Stdout) {
		return closedStream{os.Stdout}
	}
	return os.Stdout
}

// A closedStream fails like a closed file.
type closedStream struct{ stream *os.File }

func (s closedStream) fail(op string) error {
	return &fs.PathError{Op: op, Path: s.stream.Name(), Err: fmt.Errorf("%w: it is closed, or a /dev/null that was opened for both reading and writing", syscall.EBADF)}
}

func (s closedStream) Read([]byte) (int, error)  { return 0, s.fail("read") }
func (s closedStream) Write([]byte) (int, error) { return 0, s.fail("write") }

// mayOpen returns an error if path names a closed standard stream.
func mayOpen(path string) error {
	for i, stream := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		switch path {
		case stream.Name(), fmt.Sprint("/dev/fd/", i), fmt.Sprint("/proc/self/fd/", i):
			if closed(stream) {
				return closedStream{stream}.fail("open")
			}
		}
	}
	return nil
}
