package budget

import (
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// rootFiles is the root directory. Go's poller would wake a thread for each file of PSI that is
// opened, so ReadFile leaves it out.
type rootFiles struct{ fs.FS }

func rootDirectory() fs.FS { return rootFiles{os.DirFS("/")} }

func (rootFiles) ReadFile(name string) ([]byte, error) {
	fail := func(op string, err error) ([]byte, error) {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	fd, err := unix.Open("/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail("open", err)
	}
	defer unix.Close(fd)
	text := make([]byte, 0, 4096)
	for {
		n, err := unix.Read(fd, text[len(text):cap(text)])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return fail("read", err)
		case n == 0:
			return text, nil
		}
		text = slices.Grow(text[:len(text)+n], 1)
	}
}
