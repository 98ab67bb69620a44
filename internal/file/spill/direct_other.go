//go:build !linux

package spill

import (
	"errors"
	"os"
)

func setDirect(*os.File, bool) error { return errors.ErrUnsupported }

// freeSpace does nothing: Linux alone frees a part of a file.
func freeSpace(*os.File, int64, int64) {}
