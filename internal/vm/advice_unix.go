// Advice by madvise.

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vm

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// none stands in advices for what the system has no advice for.
const none = -1

func advise(addr, size uintptr, a Advice) error {
	advice := advices[a]
	if advice == none {
		return ErrUnsupported
	}
	err := unix.Madvise(bytesAt(addr, size), advice)
	if err == unix.EINVAL { // The range is sound, so the kernel does not know it, or not for such a range.
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return err
}
