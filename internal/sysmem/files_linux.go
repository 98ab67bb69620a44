package sysmem

import (
	"bytes"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// rootFiles is the root directory. Its ReadFile bypasses Go's poller, which would wake a thread
// for each PSI file that it opens.
type rootFiles struct{ fs.FS }

func Root() fs.FS { return rootFiles{os.DirFS("/")} }

func (rootFiles) ReadFile(name string) ([]byte, error) {
	fd, err := unix.Open("/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name) // fd is blocking, so the poller does not take it
	defer f.Close()
	var text bytes.Buffer
	text.Grow(4096)
	_, err = text.ReadFrom(f)
	return text.Bytes(), err
}
