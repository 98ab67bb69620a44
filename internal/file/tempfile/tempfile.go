//go:build !windows

// Package tempfile creates temporary files that are gone when they are closed, and
// when the process ends.
package tempfile

import "os"

// Create returns a new file in dir without a name. Where [Unnamed] does not work it
// has one, which begins with prefix, for an instant; a process that is killed then
// leaves it. "" means os.TempDir.
func Create(dir, prefix string) (*os.File, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	if f, err := Unnamed(dir, 0o600); err == nil {
		return f, nil
	}
	return named(dir, prefix)
}

// named returns a new file whose name it has removed.
func named(dir, prefix string) (*os.File, error) {
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
