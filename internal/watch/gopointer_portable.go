//go:build freehold_portable

package watch

import (
	"errors"
	"fmt"
)

// canTellGoPointers returns an error: only the runtime knows, and it does not export it.
func canTellGoPointers() error {
	return fmt.Errorf("freehold: track.CheckPointers: %w in builds with the tag freehold_portable", errors.ErrUnsupported)
}

func isGoPointer(word uintptr) bool { return false }
