//go:build !amd64 || race || freehold_portable || asan

package heap

// chooseEntries does nothing where there is no assembly.
func chooseEntries() {}
