//go:build !linux

package cmalloc_test

import "errors"

const canLimit = false

func limitAddressSpace(uint64) error { return errors.ErrUnsupported }
