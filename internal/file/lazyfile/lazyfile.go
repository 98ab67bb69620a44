// Package lazyfile reads files that are opened at their first read.
//
//	Find           Read ...            end of file
//	is it there?   opens it at first   closes it
//
// So a program can name any number of files, and waits for the writers of named pipes one after
// the other.
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

// Find returns the file at path. It returns an error if a regular file cannot be opened. Pipes
// and devices show their errors when they are read: opening one may wait for its other end.
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

// Stat returns the result of Find's stat.
func (f *File) Stat() (fs.FileInfo, error) { return f.info, nil }

// Read reads as os.File.Read does. The first Read opens the file. At the end of the file Read
// closes it, and does not open it again.
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

// Close closes the file if it is open. A later Read returns io.EOF.
func (f *File) Close() error {
	f.over = true
	if f.f == nil {
		return nil
	}
	opened := f.f
	f.f = nil
	return opened.Close()
}
