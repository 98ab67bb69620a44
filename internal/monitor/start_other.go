//go:build !linux

package monitor

import "errors"

// Start fails: on this system the log is not in shared memory.
func Start() error { return errors.ErrUnsupported }
