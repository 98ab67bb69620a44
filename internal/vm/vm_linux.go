// Linux: MADV_DONTNEED decommits pages, mremap moves them, RLIMIT_AS bounds their addresses.

//go:build linux && !race

package vm

import (
	"bytes"
	"fmt"
	"os"
	"sort"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

const mlockOnFault = 1 // MLOCK_ONFAULT of linux/mman.h, which golang.org/x/sys has since Go 1.26

// commit makes a range accessible. Pages that mlockall has locked become resident only as they
// are touched.
func commit(addr, size uintptr) error {
	if locked(addr, size) {
		// Kernels before 4.4 do not support mlock2: there the whole range becomes resident.
		unix.Syscall(unix.SYS_MLOCK2, addr, size, mlockOnFault)
	}
	return protect(addr, size)
}

// locked reports whether a part of a range is locked. It is false before Linux 5.4.
//
// It tries MADV_COLD, which fails with EINVAL for locked memory and on kernels
// without that advice. Only the latter fail for 0 bytes too.
func locked(addr, size uintptr) bool {
	cold := func(size uintptr) syscall.Errno {
		_, _, errno := unix.Syscall(unix.SYS_MADVISE, addr, size, unix.MADV_COLD)
		return errno
	}
	return cold(size) == unix.EINVAL && cold(0) == 0
}

// decommit of locked memory needs Linux 5.18.
func decommit(addr, size uintptr) error {
	err := unix.Madvise(bytesAt(addr, size), unix.MADV_DONTNEED)
	if err == unix.EINVAL {
		err = unix.Madvise(bytesAt(addr, size), unix.MADV_DONTNEED_LOCKED)
	}
	return err
}

// move moves one mapping at a time. Earlier moves may have split src. Kernels before
// 6.17 move one mapping per call; later ones may silently stop after some.
func move(dst, src, size uintptr) error {
	for done := uintptr(0); done < size; {
		n := oneMapping(src+done, size-done)
		if err := moveMapping(dst+done, src+done, n); err != nil {
			copy(bytesAt(src, done), bytesAt(dst, done))
			if done > 0 {
				_ = decommit(dst, done) // best effort: no caller relies on zeros here
			}
			return err
		}
		done += n
	}
	return nil
}

// moveMapping needs Linux 5.7; src is one mapping.
func moveMapping(dst, src, size uintptr) error {
	const flags = unix.MREMAP_MAYMOVE | unix.MREMAP_FIXED | unix.MREMAP_DONTUNMAP
	_, err := unix.MremapPtr(Pointer(src), size, Pointer(dst), size, flags)
	if err == nil {
		return nil
	}
	plug(dst, size, unix.PROT_READ|unix.PROT_WRITE)
	if err == unix.EINVAL {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return err
}

// oneMapping returns the size of the part of a range, from addr on, that is in one mapping: whole
// pages, at least one.
//
// It asks mremap to grow the range in place by a page. That always fails, since
// reserve leaves mapped slack behind every range. The error is EFAULT if the range
// is more than one mapping.
func oneMapping(addr, size uintptr) uintptr {
	isOne := func(size uintptr) bool {
		_, err := unix.MremapPtr(Pointer(addr), size, nil, size+pageBytes, 0)
		return err != unix.EFAULT
	}
	if isOne(size) {
		return size
	}
	pages := sort.Search(int(size/pageBytes), func(i int) bool { return !isOne(uintptr(i+1) * pageBytes) })
	return max(uintptr(pages), 1) * pageBytes
}

// addressesLeft returns the bytes of addresses that the process may still reserve.
func addressesLeft() uintptr {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &limit); err != nil || limit.Cur == unix.RLIM_INFINITY {
		return ^uintptr(0)
	}
	return uintptr(min(limit.Cur-min(limit.Cur, addressesTaken()), uint64(^uintptr(0))))
}

// addressesTaken returns the bytes of addresses that the process has, or 0 if unknown.
func addressesTaken() uint64 {
	statm, _ := os.ReadFile("/proc/self/statm") // its first field, in pages
	first, _, _ := bytes.Cut(statm, []byte(" "))
	pages, _ := strconv.ParseUint(string(first), 10, 64)
	return pages * uint64(os.Getpagesize())
}
