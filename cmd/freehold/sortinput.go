// The inputs of freehold sort.

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// A sortInput is a file that is opened when it is read, and closed at its end, so
// that any number can be named.
type sortInput struct {
	name string
	in   io.Reader
	f    *os.File
	info os.FileInfo
}

// openSortInput makes sure that the file can be read.
func openSortInput(name string, st streams) (*sortInput, error) {
	if name == stdoutPath {
		in := &sortInput{name: "standard input", in: st.in}
		if f, ok := st.in.(*os.File); ok {
			in.info, _ = f.Stat()
		}
		return in, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("read %s: is a directory", name)
	}
	in := &sortInput{name: name, info: info}
	if err == nil && !info.Mode().IsRegular() {
		in.in, in.f = f, f // a pipe may be opened once
		return in, nil
	}
	f.Close()
	return in, err
}

// Stat says how much there is to read.
func (s *sortInput) Stat() (os.FileInfo, error) {
	if s.info == nil {
		return nil, errors.ErrUnsupported
	}
	return s.info, nil
}

func (s *sortInput) Read(b []byte) (int, error) {
	if s.in == nil {
		f, err := os.Open(s.name)
		if err != nil {
			return 0, err
		}
		s.in, s.f = f, f
	}
	n, err := s.in.Read(b)
	if err == io.EOF {
		s.close()
	}
	if err != nil && err != io.EOF {
		err = fmt.Errorf("reading %s: %w", s.name, err)
	}
	return n, err
}

func (s *sortInput) close() {
	if s.f != nil {
		s.f.Close()
		s.f, s.in = nil, bytes.NewReader(nil)
	}
}
