//go:build !amd64 || race || freehold_portable || asan

package heap

// assembled returns plain: there is no assembly.
func assembled(plain functions) functions { return plain }

// countInAssembly does nothing where there is none.
func countInAssembly(bool) {}
