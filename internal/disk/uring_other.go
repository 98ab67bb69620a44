//go:build !(linux && (amd64 || arm64 || loong64 || ppc64le || riscv64))

package disk

import (
	"errors"
	"os"
)

// newUring fails: each read blocks a thread.
func newUring(*os.File, bool) (reader, error) { return nil, errors.ErrUnsupported }
