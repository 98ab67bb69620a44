// Mappings on Linux: no reserve for address space, and names.

package vm

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const noReserve = unix.MAP_NORESERVE

func setName(addr, size uintptr, name string) error {
	s, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	_, _, errno := unix.Syscall6(unix.SYS_PRCTL, unix.PR_SET_VMA, unix.PR_SET_VMA_ANON_NAME, addr, size, uintptr(unsafe.Pointer(s)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
