//go:build !windows

// Package tempfile creates temporary files that vanish when they are closed or the process ends.
package tempfile

import "os"

// Create returns a new file in dir without a name; "" means os.TempDir. Where [Unnamed] does not
// work, the file has a name that begins with prefix for an instant; a process that is killed
// then leaves the file behind.
func Create(dir, prefix string) (*os.File, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	if f, err := Unnamed(dir, 0o600); err == nil {
		return f, nil
	}
	return named(dir, prefix)
}

// named creates a file and removes its name at once.
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
