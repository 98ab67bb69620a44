//go:build !linux

package disk

import (
	"errors"
	"os"
)

// setDirect fails: reads and writes go through the page cache.
func setDirect(*os.File, bool) (align int, err error) { return 0, errors.ErrUnsupported }
