//go:build !(linux && (amd64 || arm64 || loong64 || ppc64le || riscv64))

package disk

import (
	"errors"
	"os"
)

// newRing fails: each read blocks a thread.
func newRing(*os.File) (reader, error) { return nil, errors.ErrUnsupported }
