//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package sysmem

import "errors"

// Physical fails: the system does not tell.
func Physical() (int64, error) { return 0, errors.ErrUnsupported }
