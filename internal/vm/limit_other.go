//go:build !linux || race

package vm

// addressLimit returns how many bytes of addresses the process may have: here
// only the system knows.
func addressLimit() uintptr { return ^uintptr(0) }
