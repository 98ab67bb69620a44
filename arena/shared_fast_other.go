//go:build !amd64 || race || freehold_portable || asan

package arena

// assembled returns plain: there is no assembly.
func assembled(plain functions) functions { return plain }
