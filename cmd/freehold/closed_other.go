//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package main

import "os"

// closed reports false: it is not known here.
func closed(*os.File) bool { return false }
