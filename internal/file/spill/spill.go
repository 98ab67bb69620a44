// Package spill has files for data that does not fit in memory. Where the system allows it,
// reads and writes bypass the page cache, and parts of a file can be freed. The package also
// estimates how many more files the process may open.
package spill

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/freehold-go/freehold/internal/file/tempfile"
)

// Align is the unit of direct reads and writes: their memory, offsets and lengths are
// multiples of it.
const Align = 4096

// A File is read and written past the page cache while it is direct. Its offsets and memory
// must then be multiples of [Align].
type File struct {
	*os.File
	what   string // begins errors
	direct atomic.Bool
}

// Create returns a new, direct file in dir that the process's end removes. Errors name pkg.
func Create(pkg, dir string) (*File, error) {
	f, err := tempfile.Create(dir, "freehold-sort-")
	if errors.Is(err, syscall.EMFILE) {
		err = fmt.Errorf("%w in this process (RLIMIT_NOFILE)", err)
	}
	if err != nil {
		return nil, fmt.Errorf("freehold: %s: temporary file: %w", pkg, err)
	}
	t := New(pkg, f, "temporary file in "+dir)
	t.GoDirect()
	return t, nil
}

// New returns a File for f that is not direct. Errors name pkg and what.
func New(pkg string, f *os.File, what string) *File {
	return &File{File: f, what: "freehold: " + pkg + ": " + what}
}

// GoDirect makes f bypass the page cache if it can.
func (f *File) GoDirect() { f.direct.Store(setDirect(f.File, true) == nil) }

// Direct reports whether f is direct.
func (f *File) Direct() bool { return f.direct.Load() }

// EndDirect makes f use the page cache.
func (f *File) EndDirect() error {
	if !f.direct.Swap(false) {
		return nil
	}
	return setDirect(f.File, false)
}

// WriteAt writes b at offset at.
func (f *File) WriteAt(b []byte, at int64) error { return f.access(f.File.WriteAt, b, at) }

// ReadAt fills b from offset at.
func (f *File) ReadAt(b []byte, at int64) error { return f.access(f.File.ReadAt, b, at) }

// access calls do. If the system refuses direct access, it turns it off and calls do again.
func (f *File) access(do func([]byte, int64) (int, error), b []byte, at int64) error {
	_, err := do(b, at)
	if errors.Is(err, syscall.EINVAL) && f.Direct() && f.EndDirect() == nil {
		_, err = do(b, at)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.what, systemError(err))
	}
	return nil
}

// systemError returns the system's error without the file name: a temporary file has none.
func systemError(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// Free returns the disk space of [from, to) to the file system, if the system can.
func (f *File) Free(from, to int64) { freeSpace(f.File, from, to) }
