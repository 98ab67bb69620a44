//go:build !linux

package extsort

import (
	"errors"
	"os"
)

func setDirect(*os.File, bool) error { return errors.ErrUnsupported }

func link(*os.File, string) error { return errors.ErrUnsupported }

func keepOwner(*os.File, os.FileInfo) {}
