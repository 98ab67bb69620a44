// Secrets on Linux: memfd_secret, and advice about core dumps and children.

package vm

import (
	"fmt"

	"golang.org/x/sys/unix"
)

const sysMemfdSecret = 447 // SYS_MEMFD_SECRET, which golang.org/x/sys has on some processors only

// hide maps memory of memfd_secret to a range. Since such memory is locked, the limit of locked
// memory may refuse it. Linux has it from 5.14 on, and has it on by default from 6.5 on.
//
// The memory is mapped elsewhere first: a refused MAP_FIXED might leave a hole in our range.
func hide(addr, size uintptr) error {
	fd, _, errno := unix.Syscall(sysMemfdSecret, unix.O_CLOEXEC, 0, 0)
	if errno == unix.ENOSYS || errno == unix.EPERM { // The latter is a filter's, as a container may have.
		return fmt.Errorf("%w: memfd_secret: %w", ErrUnsupported, errno)
	}
	if errno != 0 {
		return errno
	}
	defer unix.Close(int(fd))
	if err := unix.Ftruncate(int(fd), int64(size)); err != nil {
		return err
	}
	p, err := unix.MmapPtr(int(fd), 0, nil, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	if _, err := unix.MremapPtr(p, size, Pointer(addr), size, unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED); err != nil {
		_ = unix.MunmapPtr(p, size)
		plug(addr, size, unix.PROT_NONE)
		return err
	}
	return nil
}

const noAdvice = 12345 // no kernel knows it

// keep keeps a range out of core dumps and out of forked children. A child of hidden memory, which is
// shared, does not have it; other memory is zero there.
func keep(addr, size uintptr, hidden bool) (kept Secrecy) {
	if unix.Madvise(bytesAt(addr, size), noAdvice) == nil {
		return 0 // qemu-user accepts any advice and ignores it
	}
	forked := unix.MADV_WIPEONFORK
	if hidden {
		forked = unix.MADV_DONTFORK
	}
	if unix.Madvise(bytesAt(addr, size), unix.MADV_DONTDUMP) == nil {
		kept |= NoDump
	}
	if unix.Madvise(bytesAt(addr, size), forked) == nil {
		kept |= NoFork
	}
	return kept
}
