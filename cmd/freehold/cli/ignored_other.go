//go:build !linux

package cli

import "syscall"

// parentIgnores reports false: it is not known here.
func parentIgnores(syscall.Signal) bool { return false }
