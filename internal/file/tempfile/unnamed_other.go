//go:build !linux

package tempfile

import (
	"errors"
	"os"
)

// Unnamed fails: this system has no files that never have a name.
func Unnamed(string, uint32) (*os.File, error) { return nil, errors.ErrUnsupported }

// Link fails like Unnamed.
func Link(*os.File, string) error { return errors.ErrUnsupported }
