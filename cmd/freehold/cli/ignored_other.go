//go:build !linux

package cli

import "syscall"

// parentIgnores returns false: the parent's state is unknown on this system.
func parentIgnores(syscall.Signal) bool { return false }
