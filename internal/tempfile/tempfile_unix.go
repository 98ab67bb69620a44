//go:build !windows

// Package tempfile creates temporary files that are gone when they are closed, and
// when the process ends.
package tempfile

import "os"

// Create returns a new file in dir without a name. It has one, which begins with
// prefix, for an instant. "" means os.TempDir.
func Create(dir, prefix string) (*os.File, error) {
	f, err := os.CreateTemp(dir, prefix+"*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
