// Package lazyfile reads files that are opened when they are read.
//
//	Find           Read ...            its end
//	is it there?   opens it at first   closes it
//
// So any number of files can be named, and the writers of named pipes are waited for
// one after the other.
package lazyfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// File is a file that is open from its first Read to its end.
type File struct {
	path string
	info fs.FileInfo
	f    *os.File // nil unless it is open
	over bool
}

// Find returns the file at path. A regular file can be opened, or the error says why
// not. Whether a pipe or a device can be shows when it is read: to open one may take
// until its other end is opened.
func Find(path string) (*File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	switch {
	case info.IsDir():
		return nil, &os.PathError{Op: "read", Path: path, Err: errors.New("is a directory")}
	case info.Mode().IsRegular():
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		f.Close()
	}
	return &File{path: path, info: info}, nil
}

// Stat returns what Find has found.
func (f *File) Stat() (fs.FileInfo, error) { return f.info, nil }

// Read reads, as os.File.Read does. It opens the file if that is needed. At the end it
// closes the file, which is not opened again.
func (f *File) Read(b []byte) (int, error) {
	if f.over {
		return 0, io.EOF
	}
	if f.f == nil {
		opened, err := os.Open(f.path)
		if err != nil {
			return 0, err
		}
		f.f = opened
	}
	n, err := f.f.Read(b)
	if err == io.EOF {
		f.Close()
	}
	return n, err
}

// Close closes the file if it is open. A Read then is at its end.
func (f *File) Close() error {
	f.over = true
	if f.f == nil {
		return nil
	}
	opened := f.f
	f.f = nil
	return opened.Close()
}
