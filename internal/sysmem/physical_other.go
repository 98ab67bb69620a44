//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package sysmem

import "errors"

// Physical fails: no call for the machine's memory is known here.
func Physical() (int64, error) { return 0, errors.ErrUnsupported }
