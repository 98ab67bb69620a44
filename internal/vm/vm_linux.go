// Linux: MADV_DONTNEED drops pages at once, mremap moves them.

//go:build linux && !race

package vm

import (
	"fmt"
	"sort"

	"golang.org/x/sys/unix"
)

func decommit(addr, size uintptr) error {
	return unix.Madvise(bytesAt(addr, size), unix.MADV_DONTNEED)
}

// move goes mapping by mapping: earlier moves have cut src up, kernels before
// 6.17 move one at a time, and later ones may stop after some without saying.
func move(dst, src, size uintptr) error {
	for done := uintptr(0); done < size; {
		n := oneMapping(src+done, size-done)
		if err := moveMapping(dst+done, src+done, n); err != nil {
			copy(bytesAt(src, done), bytesAt(dst, done))
			if done > 0 {
				_ = decommit(dst, done) // else dst is not zero, which nobody waits for
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

// oneMapping returns how much of a range, from addr on, is one mapping: whole
// pages, at least one.
//
// It asks mremap to grow the range by a page where it is. Since reserve leaves
// mapped slack behind every range that cannot work, but the error tells: EFAULT
// if the range is more than one mapping.
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
