//go:build linux && !race

package vm

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// TellsResident reports that Resident works, unless a sandbox forbids it.
const TellsResident = true

func resident(addr, size uintptr, pages []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, addr, size, uintptr(unsafe.Pointer(unsafe.SliceData(pages))))
	if errno != 0 {
		return errno
	}
	return nil
}
