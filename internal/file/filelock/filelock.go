// Package filelock locks files against other processes, and against other users in this process.
package filelock

import "errors"

// ErrInUse is the error of Lock for a file that is locked already.
var ErrInUse = errors.New("the file is locked")
