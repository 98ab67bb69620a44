//go:build !windows

package extsort

import "os"

// createUnlinked creates a file in dir and removes its name.
func createUnlinked(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "freehold-sort-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
