//go:build !linux

package extsort

import (
	"errors"
	"os"
)

func openUnnamed(string, bool, uint32) (*os.File, bool, error) {
	return nil, false, errors.ErrUnsupported
}

func setDirect(*os.File, bool) error { return errors.ErrUnsupported }

func link(*os.File, string) error { return errors.ErrUnsupported }

func keepOwner(*os.File, os.FileInfo) {}
