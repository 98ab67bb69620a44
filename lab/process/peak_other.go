//go:build !linux

package process

import (
	"errors"
	"time"
)

var errNoProc = errors.New("needs Linux's /proc to measure")

func ResetPeak() (uint64, error)            { return 0, errNoProc }
func Peak() (uint64, error)                 { return 0, errNoProc }
func PeakWithoutFiles() (uint64, error)     { return 0, errNoProc }
func Watch(int, time.Duration) func() int64 { return func() int64 { return 0 } }
func SyncDisks()                            {}
