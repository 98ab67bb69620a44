// Mappings: what anonymous memory and mapped files share on every Unix.

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vm

import (
	"errors"

	"golang.org/x/sys/unix"
)

// anonymous is how address space is mapped: private, and without memory or
// swap set aside for it.
const anonymous = unix.MAP_ANON | unix.MAP_PRIVATE | noReserve

// overlay puts a fresh anonymous mapping over a range of ours.
func overlay(addr, size uintptr, prot int) error {
	_, err := unix.MmapPtr(-1, 0, Pointer(addr), size, prot, anonymous|unix.MAP_FIXED)
	if err != nil {
		plug(addr, size, prot)
	}
	return err
}

// plug closes the hole that a failed MAP_FIXED or mremap may leave: some
// kernels take the old mapping away before they know that the new one works.
func plug(addr, size uintptr, prot int) {
	p, err := unix.MmapPtr(-1, 0, Pointer(addr), size, unix.PROT_NONE, anonymous)
	switch {
	case err != nil:
		// Nothing more to try: the caller reports its own error.
	case uintptr(p) != addr:
		// Our range was there all along, so the system chose another place.
		_ = unix.MunmapPtr(p, size)
	case prot != unix.PROT_NONE:
		_ = unix.Mprotect(bytesAt(addr, size), prot)
	}
}

func lock(addr, size uintptr) error   { return unix.Mlock(bytesAt(addr, size)) }
func unlock(addr, size uintptr) error { return unix.Munlock(bytesAt(addr, size)) }

func outOfMemory(err error) bool {
	return errors.Is(err, ErrNoMemory) || errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EAGAIN)
}
