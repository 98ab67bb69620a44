// Standard streams that are closed.

package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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

// mayOpen returns an error if path leads to a standard stream that is closed.
func mayOpen(path string) error {
	for _, stream := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if closed(stream) && leadsTo(path, stream) {
			return closedStream{stream}.fail("open")
		}
	}
	return nil
}

// leadsTo reports whether path, or a symbolic link that it leads to, is a name of a standard
// stream.
func leadsTo(path string, stream *os.File) bool {
	fd := fmt.Sprint(stream.Fd())
	own, _ := filepath.EvalSymlinks("/proc/self/fd")
	for range 40 { // as many links as Linux follows
		dir, name := filepath.Split(path)
		if path == stream.Name() || name == fd && dir == "/dev/fd/" {
			return true
		}
		if real, err := filepath.EvalSymlinks(dir); err == nil && name == fd && real == own {
			return true
		}
		to, err := os.Readlink(path)
		if err != nil {
			return false
		}
		if path = to; !filepath.IsAbs(to) {
			path = dir + to
		}
	}
	return false
}
