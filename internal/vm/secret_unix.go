// Secrets on every Unix: mlock and mprotect.

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vm

import "golang.org/x/sys/unix"

// always is what every secret has here.
const always = Closed | Guarded

func reserveSecret(size uintptr) (uintptr, error) {
	p, err := unix.MmapPtr(-1, 0, nil, size, unix.PROT_NONE, anonymous)
	return uintptr(p), err
}

func commitSecret(addr, size uintptr) error {
	return overlay(addr, size, unix.PROT_READ|unix.PROT_WRITE)
}

func lockSecret(addr, size uintptr) error { return unix.Mlock(bytesAt(addr, size)) }

func protectSecret(addr, size uintptr, access Access) error {
	return unix.Mprotect(bytesAt(addr, size), [...]int{unix.PROT_NONE, unix.PROT_READ, unix.PROT_READ | unix.PROT_WRITE}[access])
}

func revokeSecret(addr, size uintptr) error { return overlay(addr, size, unix.PROT_NONE) }
