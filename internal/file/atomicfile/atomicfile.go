// Package atomicfile writes files that replace others when they are complete.
//
//	Create         Write ...          Commit
//	path: old      path: old          path: new
//	               a file without     owner, permissions,
//	               a name             a name, rename
//
// Devices, pipes, paths of descriptors, and files that are mount points are written in place.
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

	"github.com/freehold-go/freehold/internal/file/filelock"
	"github.com/freehold-go/freehold/internal/file/tempfile"
	"github.com/freehold-go/freehold/internal/vm"
)

// File is a file that is being written. Commit replaces the file at its path atomically. Until
// then the old file is intact, and Close discards the new one. Where the system supports it, the
// new file has no name before Commit: a process that is killed leaves no file, except at the
// instant of a replacement.
//
// Commit does not sync: after a loss of power the file may be incomplete. CommitSynced syncs.
type File struct {
	*os.File
	path    string
	temp    string      // the file's name until Commit, or ""
	old     fs.FileInfo // of the file that was at path, or nil
	inPlace bool
	closed  bool
}

// Seams for tests.
var (
	unnamed = tempfile.Unnamed
	link    = tempfile.Link
)

// Create begins a file that replaces the one at path. It follows symbolic links, also to a file
// that does not exist. It returns the system's error if the file may not be written, or if its
// directory cannot take another file.
//
// Some files are written in place:
//   - Devices and pipes.
//   - Paths of descriptors, such as /dev/stdout: holders of the descriptor would not see a new file.
//   - Mount points, as containers have them: the system renames nothing over them.
func Create(path string) (*File, error) { return createFile(path, true) }

// CreateRegular is Create, but returns an error for a file that Create would write in place. It does
// not open that file: opening a named pipe would wait for its other end.
func CreateRegular(path string) (*File, error) { return createFile(path, false) }

func createFile(path string, mayBeInPlace bool) (*File, error) {
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
		inPlace := !info.Mode().IsRegular() || ofDescriptors(dirOf(path)) || isMount(path)
		if inPlace && !mayBeInPlace {
			return nil, &os.PathError{Op: "create", Path: path, Err: errors.New("not a regular file that can be replaced")}
		}
		// Replacing a file needs the permission to write it.
		existing, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		f.old = info
		if inPlace {
			f.File, f.inPlace = existing, true
			return f, nil
		}
		existing.Close()
	}
	if f.createUnnamed() {
		return f, nil
	}
	if err := f.createNamed(); err != nil {
		var at *os.PathError // it names a temporary file, which the caller does not know
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

// Dir returns the directory of the path, as the path has it: filepath.Dir would clean it.
func (f *File) Dir() string { return dirOf(f.path) }

// InPlace reports whether writes go directly to the path: it is no regular file, or it is a
// descriptor or a mount point.
func (f *File) InPlace() bool { return f.inPlace }

// Overwrites reports whether writing changes a regular file before Commit. If so, a reader of that
// file must have reached its end before the first Write.
func (f *File) Overwrites() bool { return f.inPlace && f.old.Mode().IsRegular() }

// maxLinks is the longest chain of symbolic links, as on Linux.
const maxLinks = 40

// follow returns the target of the symbolic links at path. It keeps the directories as written:
// filepath.Join would clean them. It does not follow a descriptor's link: the system opens such
// a file itself, and the link's text may name no file, or another one.
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

// dirOf returns the directory of path as written, "." if there is none.
func dirOf(path string) string {
	if dir, _ := filepath.Split(path); dir != "" {
		return dir
	}
	return "."
}

// createUnnamed creates a file without a name, and reports whether Commit can name it.
func (f *File) createUnnamed() bool {
	dir := dirOf(f.path)
	file, err := unnamed(dir, 0o666)
	if err != nil {
		return false
	}
	// Try to link the file to the path of an existing directory. This must fail, and only
	// because the name is taken: then Commit can link the file.
	if err := link(file, dir); !errors.Is(err, fs.ErrExist) {
		file.Close()
		return false
	}
	f.File = file
	return true
}

// createNamed creates a file with a temporary name. Until Commit only its owner may read it if there
// is an old file, whose permissions may be as strict.
func (f *File) createNamed() error {
	mode := fs.FileMode(0o666)
	if f.old != nil {
		mode = 0o600
	}
	return f.name(func(name string) (err error) {
		f.File, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		return err
	})
}

// name calls give with new names beside the path until one is free, and sets temp to it. The
// names are short: a name that extends the path's might be too long.
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

// Commit closes the file and gives it its path. The new file gets the permissions of the old
// one, and its owner if the system allows it. On Linux it also gets the access control list and
// the extended attributes in the user namespace. The setuid and setgid bits stay only for root,
// as when root writes to a file. After an error the old file is unchanged, and the new one is
// discarded. A regular file that was written in place is cut at the end of the last Write.
func (f *File) Commit() error { return f.commit(false) }

// CommitSynced is Commit, and syncs the file before it gets its path, and then the directory. So
// after a loss of power the path has the whole old file or the whole new one, and the new one once
// CommitSynced has returned nil. If only the directory cannot be synced, CommitSynced returns the
// error, but the path has the new file.
func (f *File) CommitSynced() error { return f.commit(true) }

func (f *File) commit(synced bool) error {
	if f.closed {
		return nil
	}
	defer f.Close()
	if err := f.complete(); err != nil {
		return err
	}
	if synced {
		if err := vm.SyncFile(f.File); err != nil {
			return err
		}
	}
	if f.inPlace {
		return f.Close()
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
	if synced {
		return filelock.SyncEntry(f.path)
	}
	return nil
}

// complete cuts a regular file that was written in place, and gives a new file the attributes of
// the old one.
func (f *File) complete() error {
	switch {
	case f.Overwrites():
		end, err := f.Seek(0, io.SeekCurrent)
		if err == nil {
			err = f.Truncate(end)
		}
		return err
	case f.old != nil && !f.inPlace:
		return f.keepAttributes()
	}
	return nil
}

// link links an unnamed file to the path or, if that is taken, to a name to rename it from. So a
// killed process leaves no second name unless it replaces a file.
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
