//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package budget

import "errors"

// physicalMemory fails: the system does not tell.
func physicalMemory() (int64, error) { return 0, errors.ErrUnsupported }
