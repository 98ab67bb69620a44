// Mapped files by mmap, in race builds too.

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vm

import "golang.org/x/sys/unix"

// OffsetBytes is the alignment of offsets in MapFile.
func OffsetBytes() uintptr { return pageBytes }

// fileRanges holds the addresses of unmapped files. A mapping may replace several
// old ones, so neighbours are joined.
var fileRanges rangeList

const rangesJoin = true

func mapFile(fd uintptr, offset int64, size uintptr, writable bool) (uintptr, error) {
	size = roundUp(size, pageBytes)
	prot := unix.PROT_READ
	if writable {
		prot |= unix.PROT_WRITE
	}
	r, ok := fileRanges.take(size)
	if !ok {
		p, err := unix.MmapPtr(int(fd), offset, nil, size, prot, unix.MAP_SHARED)
		if err != nil {
			return 0, err
		}
		return uintptr(p), nil
	}
	_, err := unix.MmapPtr(int(fd), offset, Pointer(r.addr), size, prot, unix.MAP_SHARED|unix.MAP_FIXED)
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
