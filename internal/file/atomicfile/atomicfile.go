// Package atomicfile writes files that replace others when they are complete.
//
//	Create         Write ...          Commit
//	path: old      path: old          path: new
//	               a file without     owner, permissions,
//	               a name             a name, rename
//
// A device, a pipe, a file that is reached through a descriptor, or one that is a mount of its own is
// written in place.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/freehold-go/freehold/internal/file/tempfile"
)

// File is a file that is being written. Commit replaces the file at its path
// atomically. Until then the old file is intact, and Close discards the new one,
// which has no name where the system can create files without one: a process that is
// killed leaves nothing then, unless that was in the instant of a replacement.
//
// Commit does not wait for the disk: after a loss of power the file may be
// incomplete.
type File struct {
	*os.File
	path    string
	temp    string      // the name that it has until Commit, or ""
	old     fs.FileInfo // of the file at path before, or nil
	inPlace bool
	closed  bool
}

// Replaced by tests.
var (
	unnamed = tempfile.Unnamed
	link    = tempfile.Link
)

// Create begins a file that replaces the one at path. Symbolic links are followed,
// also to a file that does not exist. A device or a pipe is written at once, and so is a
// file whose path is a descriptor, such as /dev/stdout: it may have no name, and who holds
// the descriptor would not see another file. A file that is a mount of its own, as containers have
// them, cannot be renamed over, so it is written at once too. The error is that of the system if the file
// may not be written, or if its directory cannot take another one.
func Create(path string) (*File, error) {
	if path == "" {
		return nil, &os.PathError{Op: "create", Err: fs.ErrNotExist}
	}
	path, err := follow(path)
	if err != nil {
		return nil, err
	}
	f := &File{path: path}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, &os.PathError{Op: "create", Path: path, Err: errors.New("is a directory")}
	default:
		// Who may not write the file may not replace it either.
		existing, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		f.old = info
		if !info.Mode().IsRegular() || ofDescriptors(dirOf(path)) || isMount(path) {
			f.File, f.inPlace = existing, true
			return f, nil
		}
		existing.Close()
	}
	if f.createUnnamed() {
		return f, nil
	}
	if err := f.createNamed(); err != nil {
		var at *os.PathError // which names a file that the caller knows nothing of
		if errors.As(err, &at) {
			err = at.Err
		}
		if f.old != nil {
			return nil, fmt.Errorf("%s is replaced, which takes a new file in its directory: %w", path, err)
		}
		return nil, &os.PathError{Op: "create", Path: path, Err: err}
	}
	return f, nil
}

// Path returns the path, after symbolic links.
func (f *File) Path() string { return f.path }

// InPlace reports whether what is written goes to the path at once: it leads to no
// regular file, or is a descriptor or a mount.
func (f *File) InPlace() bool { return f.inPlace }

// Overwrites reports whether writing changes a regular file before Commit. A reader of
// that file must be at its end first.
func (f *File) Overwrites() bool { return f.inPlace && f.old.Mode().IsRegular() }

// maxLinks is how many links may lead to a file, as on Linux.
const maxLinks = 40

// follow returns where the symbolic links at path lead. The directories in it stay as
// they are: filepath.Join would not. It does not follow the links that stand for
// descriptors: the system opens the file itself, and the link's text may name no file, or
// another one.
func follow(path string) (string, error) {
	at := path
	for range maxLinks + 1 {
		target, err := os.Readlink(at)
		if err != nil || ofDescriptors(dirOf(at)) {
			return at, nil
		}
		if !filepath.IsAbs(target) {
			dir, _ := filepath.Split(at)
			target = dir + target
		}
		at = target
	}
	return "", &os.PathError{Op: "create", Path: path, Err: errors.New("too many levels of symbolic links")}
}

// dirOf returns the directory of path as it is written.
func dirOf(path string) string {
	if dir, _ := filepath.Split(path); dir != "" {
		return dir
	}
	return "."
}

// createUnnamed creates a file without a name, if it could have one later.
func (f *File) createUnnamed() bool {
	dir := dirOf(f.path)
	file, err := unnamed(dir, 0o666)
	if err != nil {
		return false
	}
	// A name that is taken is the only obstacle to naming it dir: that is Commit's
	// link, but for its success.
	if err := link(file, dir); !errors.Is(err, fs.ErrExist) {
		file.Close()
		return false
	}
	f.File = file
	return true
}

func (f *File) createNamed() error {
	return f.name(func(name string) (err error) {
		f.File, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		return err
	})
}

// name sets temp to a name beside the path that give can give to the file. It is
// short: one made of the path's might be too long.
func (f *File) name(give func(name string) error) error {
	dir, _ := filepath.Split(f.path)
	for {
		name := dir + ".freehold-" + strconv.FormatUint(rand.Uint64(), 36)
		err := give(name)
		if err == nil {
			f.temp = name
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

// Commit closes the file and gives it its path. It has the permissions of the file
// that it replaces, on Linux its access control list and extended attributes in the user namespace
// too, and, if the system allows it, the owner. The setuid and setgid bits stay if the process is root's,
// as when root writes to a file. After an error that
// file is unchanged, and the new one is discarded. A regular file that was written in
// place ends where the last Write did.
func (f *File) Commit() error {
	if f.closed {
		return nil
	}
	defer f.Close()
	if f.inPlace {
		return f.commitInPlace()
	}
	if f.old != nil {
		if err := f.keepAttributes(); err != nil {
			return err
		}
	}
	if f.temp == "" {
		if err := f.link(); err != nil {
			return err
		}
	}
	if err := f.File.Close(); err != nil {
		return err
	}
	if f.temp != f.path {
		if err := os.Rename(f.temp, f.path); err != nil {
			return err
		}
	}
	f.closed = true
	return nil
}

func (f *File) commitInPlace() error {
	if f.Overwrites() {
		end, err := f.Seek(0, io.SeekCurrent)
		if err == nil {
			err = f.Truncate(end)
		}
		if err != nil {
			return err
		}
	}
	return f.Close()
}

// link gives a file without a name the path or, if that is taken, a name to rename it
// from. So a process that is killed leaves no other name if it replaces nothing.
func (f *File) link() error {
	if f.old == nil {
		err := link(f.File, f.path)
		if err == nil {
			f.temp = f.path
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return f.name(func(name string) error { return link(f.File, name) })
}

// Close discards the file, unless Commit has named it. It may be called again.
func (f *File) Close() error {
	if f.closed {
		return nil
	}
	f.closed = true
	err := f.File.Close()
	if f.temp != "" {
		os.Remove(f.temp)
	}
	return err
}
