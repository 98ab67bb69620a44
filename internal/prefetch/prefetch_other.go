//go:build !amd64 && !arm64

package prefetch

const LineBytes = 64

// Lines does nothing.
func Lines(addr uintptr, n int) {}
