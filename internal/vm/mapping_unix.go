// Mappings: code for anonymous memory and mapped files on every Unix.

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vm

import (
	"errors"

	"golang.org/x/sys/unix"
)

// anonymous are the flags for address space: private, without memory or swap
// reserved for it.
const anonymous = unix.MAP_ANON | unix.MAP_PRIVATE | noReserve

// overlay replaces one of our ranges with a fresh anonymous mapping.
func overlay(addr, size uintptr, prot int) error {
	_, err := unix.MmapPtr(-1, 0, Pointer(addr), size, prot, anonymous|unix.MAP_FIXED)
	if err != nil {
		plug(addr, size, prot)
	}
	return err
}

// plug closes the hole that a failed MAP_FIXED or mremap may leave: some kernels
// unmap the old range before the new mapping succeeds.
func plug(addr, size uintptr, prot int) {
	p, err := unix.MmapPtr(-1, 0, Pointer(addr), size, unix.PROT_NONE, anonymous)
	switch {
	case err != nil:
		// Nothing more to try: the caller reports its own error.
	case uintptr(p) != addr:
		// There was no hole, so the system chose another address.
		_ = unix.MunmapPtr(p, size)
	case prot != unix.PROT_NONE:
		_ = unix.Mprotect(bytesAt(addr, size), prot)
	}
}

func outOfMemory(err error) bool {
	return errors.Is(err, ErrNoMemory) || errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EAGAIN)
}
