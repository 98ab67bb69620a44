//go:build amd64 || arm64

// Package prefetch asks the processor for memory that is about to be read.
package prefetch

// LineBytes is how far lines are apart.
const LineBytes = 64

// Lines begins to load n lines, at least 1, from the address on, and does not wait for them. The
// addresses need not be mapped.
//
//go:noescape
func Lines(addr uintptr, n int)
