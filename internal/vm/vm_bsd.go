// macOS and the BSDs: decommit maps new memory over the old, since their madvise
// does not guarantee zero pages. Pages cannot be moved.

//go:build (darwin || freebsd || netbsd || openbsd || dragonfly) && !race

package vm

import "golang.org/x/sys/unix"

func commit(addr, size uintptr) error { return protect(addr, size) }

func decommit(addr, size uintptr) error {
	return overlay(addr, size, unix.PROT_READ|unix.PROT_WRITE)
}

func move(dst, src, size uintptr) error { return ErrUnsupported }
