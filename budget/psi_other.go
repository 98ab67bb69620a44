//go:build !linux

package budget

import "errors"

// watchStalls fails: only Linux has PSI.
func watchStalls(string, func()) (stop func(), err error) { return nil, errors.ErrUnsupported }
