//go:build !linux

package tempfile

import (
	"errors"
	"os"
)

// Unnamed fails: this system has no unnamed files.
func Unnamed(string, uint32) (*os.File, error) { return nil, errors.ErrUnsupported }

// Link fails as Unnamed does.
func Link(*os.File, string) error { return errors.ErrUnsupported }
