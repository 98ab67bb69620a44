//go:build !linux

package process

import "errors"

var errNoProc = errors.New("needs Linux's /proc to measure")

func ResetPeak() (uint64, error)     { return 0, errNoProc }
func Peak() (uint64, error)          { return 0, errNoProc }
func PeakOf(pid int) (uint64, error) { return 0, errNoProc }
func SyncDisks()                     {}
