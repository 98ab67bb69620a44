//go:build !linux

package extsort

import (
	"errors"
	"os"
)

func setDirect(*os.File, bool) error { return errors.ErrUnsupported }

// freeSpace does nothing: this system cannot free a part of a file as Linux does.
func freeSpace(*os.File, int64, int64) {}
