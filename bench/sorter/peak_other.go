//go:build !linux

package main

import "errors"

var errNoProc = errors.New("needs Linux's /proc to measure")

func resetPeak() (uint64, error)     { return 0, errNoProc }
func peakBytes() (uint64, error)     { return 0, errNoProc }
func peakOf(pid int) (uint64, error) { return 0, errNoProc }
func cpuTime() int64                 { return 0 }
func syncDisks()                     {}
