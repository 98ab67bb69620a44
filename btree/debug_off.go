//go:build !freehold_debug

package btree

// debug is false in normal builds: the compiler drops the checks.
const debug = false
