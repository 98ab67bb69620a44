// Anonymous memory by VirtualAlloc. Race builds use vm_go.go instead.

//go:build !race

package vm

import "golang.org/x/sys/windows"

// GoBacked reports that memory is Go's own, so that Revoke cannot make it fault.
const GoBacked = false

// HolesReadZero reports that a decommitted range may be accessed without Commit and
// reads zero.
const HolesReadZero = false

// maxReserve is the first size that a reservation tries.
const maxReserve uintptr = 1 << (28 + 10*(^uintptr(0)>>63)) // 256 MiB or 256 GiB

func reserve(size, align uintptr) (addr uintptr, err error) {
	addr, err = windows.VirtualAlloc(0, size+align, windows.MEM_RESERVE, windows.PAGE_NOACCESS)
	if err == windows.ERROR_INVALID_PARAMETER { // The size exceeds the address space.
		err = windows.ERROR_NOT_ENOUGH_MEMORY
	}
	if err != nil {
		return 0, err
	}
	return RoundUp(addr, align), nil
}

func commit(addr, size uintptr) error {
	_, err := windows.VirtualAlloc(addr, size, windows.MEM_COMMIT, windows.PAGE_READWRITE)
	return err
}

func decommit(addr, size uintptr) error {
	return windows.VirtualFree(addr, size, windows.MEM_DECOMMIT)
}

func revoke(addr, size uintptr) error { return decommit(addr, size) }

func revokeWrites(addr, size uintptr) error { return decommit(addr, size) }

func renew(addr, size uintptr) error { return decommit(addr, size) }

func move(dst, src, size uintptr) error { return ErrUnsupported }
