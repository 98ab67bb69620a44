// Anonymous memory by mmap, for every Unix. Race builds use vm_go.go instead.
//
// vm_linux.go and vm_bsd.go have commit, decommit and move.

//go:build (linux || darwin || freebsd || netbsd || openbsd || dragonfly) && !race

package vm

import "golang.org/x/sys/unix"

// GoBacked reports that memory is Go's own, so that Revoke cannot make it fault.
const GoBacked = false

// HolesReadZero reports that a decommitted range may be accessed without Commit and
// reads zero.
const HolesReadZero = true

// maxReserve is the largest reservation to try first. Limits or a small address
// space may refuse it: then try less.
const maxReserve uintptr = 1 << (28 + 12*(^uintptr(0)>>63)) // 256 MiB or 1 TiB

// reserve leaves mapped slack of at least a page behind the range. move relies on
// it.
func reserve(size, align uintptr) (addr uintptr, err error) {
	p, err := unix.MmapPtr(-1, 0, nil, size+align, unix.PROT_NONE, anonymous)
	if err == unix.EINVAL { // The size exceeds the address space.
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

// revokeWrites asks for no writable memory: the overcommit limit might refuse it.
func revokeWrites(addr, size uintptr) error { return overlay(addr, size, unix.PROT_READ) }

// renew maps the range without access, like Reserve: the overcommit limit may
// refuse writable memory after the old mapping is gone.
func renew(addr, size uintptr) error { return overlay(addr, size, unix.PROT_NONE) }
