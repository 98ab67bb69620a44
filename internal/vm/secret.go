// Memory for secrets: pages that are locked, left out of core dumps and of children, and that the
// program itself can reach only while they are opened. Race builds use the same memory.
//
//	           CommitSecret                 ProtectSecret
//	reserved ---------------> ReadWrite <------------------> ReadOnly, NoAccess
//	    ^                                                        |
//	    +------------------- RevokeSecret -----------------------+

package vm

import "fmt"

// A Secrecy is a set of properties of the memory of secrets. Package secret documents them.
type Secrecy uint8

const (
	Locked Secrecy = 1 << iota
	Hidden
	NoDump
	NoFork
	Closed
	Guarded
)

// An Access is a right to pages.
type Access uint8

const (
	NoAccess Access = iota
	ReadOnly
	ReadWrite
)

// ReserveSecret reserves size bytes of address space for the calls below, which take no other
// memory. The range is not accessible, and never released.
func ReserveSecret(size uintptr) (addr uintptr, err error) {
	check(OpReserve, pageBytes, size)
	err = do(OpReserve, 0, size, func(_, size uintptr) error {
		addr, err = reserveSecret(size)
		return err
	})
	return addr, err
}

// CommitSecret makes a range readable, writable and zero, with the strongest protection that the
// system gives. If got lacks a property of need, err says why. After an error the range is as after
// RevokeSecret.
func CommitSecret(addr, size uintptr, need Secrecy) (got Secrecy, err error) {
	check(OpCommit, addr, size)
	why := do(OpHide, addr, size, hide)
	if why == nil {
		got = Locked | Hidden
	} else {
		if err := do(OpCommit, addr, size, commitSecret); err != nil {
			return 0, err
		}
		if err := do(OpLock, addr, size, lockSecret); err != nil {
			why = fmt.Errorf("%w; %w", why, err)
		} else {
			got = Locked
		}
	}
	got |= always | keep(addr, size, got&Hidden != 0)
	if lacks := need &^ got; lacks != 0 {
		_ = RevokeSecret(addr, size)
		if lacks&(Locked|Hidden) == 0 {
			why = ErrUnsupported
		}
		return got, why
	}
	return got, nil
}

// ProtectSecret sets the access to a committed range. It has no effect on a range without Closed.
func ProtectSecret(addr, size uintptr, access Access) error {
	check(OpProtect, addr, size)
	if access > ReadWrite {
		panic(fmt.Sprintf("freehold: vm: access %d does not exist", access))
	}
	return do(OpProtect, addr, size, func(addr, size uintptr) error { return protectSecret(addr, size, access) })
}

// RevokeSecret drops the contents of a range, unlocks it and returns its memory.
func RevokeSecret(addr, size uintptr) error {
	check(OpRevoke, addr, size)
	return do(OpRevoke, addr, size, revokeSecret)
}
