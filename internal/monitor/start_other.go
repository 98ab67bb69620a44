//go:build !linux

package monitor

import "errors"

// Start fails: a process here shares no memory and no files with another in the way that
// it takes.
func Start() error { return errors.ErrUnsupported }
