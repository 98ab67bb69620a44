//go:build !linux

package cmalloc_test

import "errors"

const canLimit = false

func limitAddressSpace(uint64) (limit uint64, err error) { return 0, errors.ErrUnsupported }
