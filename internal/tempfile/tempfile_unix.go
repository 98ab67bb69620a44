//go:build !windows

package buffer

import "os"

// createTemp returns a new file without a name.
func createTemp(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "freehold-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
