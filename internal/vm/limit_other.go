//go:build !linux || race

package vm

// addressesLeft returns how many more bytes of addresses the process may reserve.
// It is unknown here.
func addressesLeft() uintptr { return ^uintptr(0) }
