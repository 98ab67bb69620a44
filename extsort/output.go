// File: an output that appears under its name when it is complete.

package extsort

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/freehold-go/freehold/internal/tempfile"
)

// File is a file that is being written, for [Sort] and [Merge]. [Create] makes one.
// It replaces the file of its name, if any, at Commit; until then that keeps its
// contents. What is written has no name before, or, where the system has no files
// without a name, one that Close removes. A process that is killed leaves nothing
// then, unless that was in the instant between a name and the replacement of an old
// file.
//
// Commit does not wait for the disk: after a loss of power the file may be
// incomplete.
type File struct {
	path    string
	f       *file
	temp    string      // the name that it has, "" if none: path, or one to rename it from
	old     fs.FileInfo // of the file that it replaces, or nil
	at      int64
	inPlace bool // what has the name is no regular file, and is written itself
	closed  bool
}

// Create begins a file that will be named path. A symbolic link is followed. A
// device or a pipe of that name is written at once. Close it in the end.
func Create(path string) (*File, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	out := &File{path: path}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, &os.PathError{Op: "create", Path: path, Err: errors.New("is a directory")}
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		out.f, out.inPlace = &file{f: f, dir: path}, true
		return out, nil
	case err == nil:
		// Who may not write the file may not replace it either.
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		f.Close()
		out.old = info
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	f, err := tempfile.Unnamed(out.dir(), 0o666)
	if err != nil {
		f, err = out.createNamed(os.O_RDWR)
	}
	if err != nil {
		return nil, err
	}
	out.f = &file{f: f, dir: path}
	return out, nil
}

func (f *File) dir() string { return filepath.Dir(f.path) }

// tempName returns a name that is probably free.
func (f *File) tempName() string {
	return filepath.Join(f.dir(), "."+filepath.Base(f.path)+"."+strconv.FormatUint(rand.Uint64(), 36))
}

func (f *File) createNamed(flags int) (*os.File, error) {
	for {
		f.temp = f.tempName()
		file, err := os.OpenFile(f.temp, flags|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return file, err
		}
	}
}

// Write appends b.
func (f *File) Write(b []byte) (int, error) {
	if err := f.writeAt(b, f.at); err != nil {
		return 0, err
	}
	f.at += int64(len(b))
	return len(b), nil
}

func (f *File) writeAt(b []byte, at int64) error {
	var err error
	if f.inPlace {
		_, err = f.f.f.Write(b)
	} else {
		_, err = f.f.f.WriteAt(b, at)
		if err != nil && f.f.giveUpDirect(err) {
			_, err = f.f.f.WriteAt(b, at)
		}
	}
	if err != nil {
		return fmt.Errorf("freehold: extsort: writing %s: %w", f.path, systemError(err))
	}
	return nil
}

// fill calls write with a writer to f that has two blocks of mem. Much data is
// written past the page cache, which is faster than to leave it there.
func (f *File) fill(mem []byte, much bool, write func(*writer) error) error {
	if much && !f.inPlace && f.at&(blockAlign-1) == 0 && setDirect(f.f.f, true) == nil {
		f.f.direct.Store(true)
	}
	direct := f.f.direct.Load()
	size := f.at
	err := writing(mem, f.at, f.writeAt, func(w *writer) error {
		err := write(w)
		size = w.size()
		if direct {
			w.pad()
		}
		return err
	})
	if direct && err == nil {
		if err = f.f.f.Truncate(size); err == nil && f.f.direct.Swap(false) {
			err = setDirect(f.f.f, false)
		}
	}
	f.at = size
	return err
}

// Commit closes the file and gives it its name. It has the permissions of the file
// that it replaces and, if the system allows it, the owner. After an error that
// file is unchanged.
func (f *File) Commit() error {
	if f.closed || f.inPlace {
		return f.Close()
	}
	if f.old != nil {
		keepOwner(f.f.f, f.old)
		if err := f.f.f.Chmod(f.old.Mode().Perm()); err != nil {
			return err
		}
	}
	if f.temp == "" {
		if err := f.link(); err != nil {
			return fmt.Errorf("freehold: extsort: naming %s: %w", f.path, err)
		}
	}
	err := f.f.f.Close()
	if err == nil && f.temp != f.path {
		err = os.Rename(f.temp, f.path)
	}
	f.closed = true
	if err != nil {
		os.Remove(f.temp)
	}
	return err
}

// link gives a file without a name its own, or one to rename it from where there is
// a file to replace.
func (f *File) link() error {
	name := f.path
	if f.old != nil {
		name = f.tempName()
	}
	for {
		err := link(f.f.f, name)
		if err == nil {
			f.temp = name
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		name = f.tempName()
	}
}

// Close drops the file, unless Commit has named it. It may be called again.
func (f *File) Close() error {
	if f.closed {
		return nil
	}
	f.closed = true
	err := f.f.f.Close()
	if f.temp != "" {
		os.Remove(f.temp)
	}
	return err
}
