// Windows: the errors of a system that is out of memory.

package vm

import (
	"errors"
	"syscall"
	"testing"

	"golang.org/x/sys/windows"
)

func TestErrnoClasses(t *testing.T) {
	for errno, want := range map[syscall.Errno]error{
		windows.ERROR_NOT_ENOUGH_MEMORY: ErrNoMemory,
		windows.ERROR_OUTOFMEMORY:       ErrNoMemory,
		windows.ERROR_COMMITMENT_LIMIT:  ErrNoMemory,
		windows.ERROR_WORKING_SET_QUOTA: ErrNoMemory,
		windows.ERROR_NOT_SUPPORTED:     ErrUnsupported,
	} {
		if err := error(&Error{Op: OpCommit, Err: errno}); !errors.Is(err, want) || !errors.Is(err, errno) {
			t.Errorf("%v is not %v", err, want)
		}
	}
}
