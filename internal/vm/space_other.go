//go:build !(linux || darwin || dragonfly || freebsd)

package vm

import "os"

func hasSpace(*os.File, int64) bool { return true }
