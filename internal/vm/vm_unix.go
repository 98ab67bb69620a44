// Anonymous memory by mmap, for every Unix. Race builds use vm_go.go instead.
//
// What differs is in vm_linux.go and vm_bsd.go: how memory is decommitted, and
// whether pages can be moved.

//go:build (linux || darwin || freebsd || netbsd || openbsd || dragonfly) && !race

package vm

import "golang.org/x/sys/unix"

// GoBacked reports that memory is Go's own, so that Revoke cannot make it fault.
const GoBacked = false

// HolesReadZero reports that a decommitted range may be touched again without
// Commit, and then reads zero.
const HolesReadZero = true

// maxReserve is the largest reservation worth asking for first. Limits or a
// narrow address space may refuse it: try less.
const maxReserve uintptr = 1 << (28 + 12*(^uintptr(0)>>63)) // 256 MiB or 1 TiB

// reserve leaves mapped slack, at least a page, behind what it returns; move
// relies on it.
func reserve(size, align uintptr) (addr uintptr, err error) {
	p, err := unix.MmapPtr(-1, 0, nil, size+align, unix.PROT_NONE, anonymous)
	if err == unix.EINVAL { // It can only be the size, more than the address space.
		err = unix.ENOMEM
	}
	if err != nil {
		return 0, err
	}
	return roundUp(uintptr(p), align), nil
}

// protect makes a range readable and writable.
func protect(addr, size uintptr) error {
	return unix.Mprotect(bytesAt(addr, size), unix.PROT_READ|unix.PROT_WRITE)
}

func revoke(addr, size uintptr) error { return overlay(addr, size, unix.PROT_NONE) }

// renew starts from no access, like Reserve: mapping writable memory can be
// refused by the overcommit limit after the old mapping is gone.
func renew(addr, size uintptr) error { return overlay(addr, size, unix.PROT_NONE) }
