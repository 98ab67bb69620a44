// Advice by madvise.

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vm

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// none marks an unsupported advice in advices.
const none = -1

func advise(addr, size uintptr, a Advice) error {
	advice := advices[a]
	if advice == none {
		return ErrUnsupported
	}
	err := unix.Madvise(bytesAt(addr, size), advice)
	if err == unix.EINVAL { // The range is valid, so the kernel does not support the advice there.
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return err
}
