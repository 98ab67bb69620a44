// Anonymous memory by mmap, for every Unix. Race builds use vm_go.go instead.
//
// commit, decommit and move are in vm_linux.go and vm_bsd.go.

//go:build (linux || darwin || freebsd || netbsd || openbsd || dragonfly) && !race

package vm

import "golang.org/x/sys/unix"

// GoBacked reports that memory is Go's own, so that Revoke cannot make it fault.
const GoBacked = false

// HolesReadZero reports that a decommitted range may be accessed without Commit and
// reads zero.
const HolesReadZero = true

// maxReserve is the first size that a reservation tries. Limits or a small address space may
// refuse it.
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
	return RoundUp(uintptr(p), align), nil
}

// protect makes a range readable and writable.
func protect(addr, size uintptr) error {
	return unix.Mprotect(bytesAt(addr, size), unix.PROT_READ|unix.PROT_WRITE)
}

func revoke(addr, size uintptr) error { return overlay(addr, size, unix.PROT_NONE) }

// revokeWrites maps the range read-only: the overcommit limit might refuse writable memory.
func revokeWrites(addr, size uintptr) error { return overlay(addr, size, unix.PROT_READ) }

// renew maps the range inaccessible, like Reserve. With writable memory the overcommit limit
// might refuse the new mapping after the old one is gone.
func renew(addr, size uintptr) error { return overlay(addr, size, unix.PROT_NONE) }
