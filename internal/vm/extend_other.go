//go:build !(linux || darwin || windows)

package vm

import "os"

// allocateFile is ExtendFile's system call, which these systems do not have.
func allocateFile(*os.File, int64, int64) error { return ErrUnsupported }
