// Mapped files by mmap, in race builds too.

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vm

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// fileRanges holds the addresses of unmapped files. A mapping may replace several
// old ones, so neighbours are joined.
var fileRanges rangeList

const rangesJoin = true

func mapFile(fd, size uintptr, writable bool) (uintptr, error) {
	size = RoundUp(size, pageBytes)
	prot := unix.PROT_READ
	if writable {
		prot |= unix.PROT_WRITE
	}
	r, ok := fileRanges.take(size)
	if !ok {
		p, err := unix.MmapPtr(int(fd), 0, nil, size, prot, unix.MAP_SHARED)
		if err != nil {
			return 0, err
		}
		return uintptr(p), nil
	}
	_, err := unix.MmapPtr(int(fd), 0, Pointer(r.addr), size, prot, unix.MAP_SHARED|unix.MAP_FIXED)
	if err != nil {
		plug(r.addr, size, unix.PROT_NONE)
		fileRanges.put(r)
		return 0, err
	}
	if r.size > size {
		fileRanges.put(addressRange{r.addr + size, r.size - size})
	}
	return r.addr, nil
}

func unmapFile(addr, size uintptr) error {
	if err := overlay(addr, size, unix.PROT_NONE); err != nil {
		return err
	}
	fileRanges.put(addressRange{addr, size})
	return nil
}

func syncFile(addr, size uintptr) error { return unix.Msync(bytesAt(addr, size), unix.MS_SYNC) }

// isSparse reports whether f has less disk space than its length.
func isSparse(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Blocks*512 < s.Size
}
