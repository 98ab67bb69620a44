// Mapped files: a file's bytes as shared memory.
//
//	fresh address --MapFile--> mapped --UnmapFile--> free --MapFile--> mapped
//
// A file that grows is mapped again, whole. Its pages stay in the page cache, so nothing is
// copied.
//
// The address ranges of unmapped files are kept, inaccessible, for later files. See ranges.go.

package vm

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"syscall"
)

// MapFile maps the first size bytes of f as shared memory. Writes reach the file at
// Sync at the latest. f may be closed. Size need not be whole pages: bytes past it,
// up to the end of the page, are not kept.
//
// The error is io.ErrUnexpectedEOF if the file is too short, and matches
// [ErrUnsupported] on systems without mapped files. Access past the end of a file
// that was truncated later faults (SIGBUS). So does a write into a hole if the disk
// is full: see [ExtendFile].
//
// Precondition: size > 0.
func MapFile(f *os.File, size uintptr, writable bool) (addr uintptr, err error) {
	if size == 0 || size > math.MaxInt-1<<16 { // so that it can be rounded up
		panic(fmt.Sprintf("freehold: vm: map file: %d bytes", size))
	}
	err = do(OpMapFile, 0, size, func(_, size uintptr) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if info.Mode().IsRegular() && info.Size() < int64(size) {
			return io.ErrUnexpectedEOF
		}
		conn, err := f.SyscallConn()
		if err != nil {
			return err
		}
		controlErr := conn.Control(func(fd uintptr) { addr, err = mapFile(fd, size, writable) })
		if controlErr != nil {
			return controlErr
		}
		return err
	})
	return addr, err
}

// ExtendFile makes f at least to bytes long and allocates disk space for every byte of [from,
// to), so that writes there through a mapping never find a full disk. f keeps its contents. The
// error is the system's: ENOSPC, EDQUOT, EFBIG. After an error f has its old length.
//
// If the file system cannot allocate space, ExtendFile writes zeros into holes and beyond f's
// end. A copy-on-write file system still needs space for each later write. Windows and macOS
// allocate nothing for holes before f's end.
//
// Precondition: 0 <= from <= to.
func ExtendFile(f *os.File, from, to int64) error {
	if from < 0 || to < from {
		panic(fmt.Sprintf("freehold: vm: extend file: from %d to %d", from, to))
	}
	if from == to {
		return nil
	}
	return extendFile(f, from, to, allocateFile)
}

// AllocateFile is ExtendFile, but writes nothing: where the file system cannot allocate space, it
// only makes f longer, and a later write may find a full disk. It fails early if the disk has too
// little room, before the system takes all that there is.
func AllocateFile(f *os.File, from, to int64) error {
	return extendFile(f, from, to, func(f *os.File, from, to int64) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if to > info.Size() && !hasSpace(f, to-info.Size()) {
			return syscall.ENOSPC
		}
		err = allocateFile(f, from, to)
		if errors.Is(err, errors.ErrUnsupported) && to > info.Size() {
			err = f.Truncate(to)
		}
		if errors.Is(err, errors.ErrUnsupported) {
			err = nil
		}
		return err
	})
}

// extendFile is ExtendFile with a given function for the system call.
func extendFile(f *os.File, from, to int64, allocate func(f *os.File, from, to int64) error) error {
	return do(OpExtendFile, 0, uintptr(to-from), func(_, _ uintptr) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		size := info.Size()
		if to > size {
			if err := mayGrowTo(to); err != nil {
				return err
			}
		}
		err = allocate(f, from, to)
		if errors.Is(err, errors.ErrUnsupported) {
			err = writeZeros(f, from, size, to)
		}
		if err != nil {
			_ = f.Truncate(size) // ext4 keeps the space that it allocated before the disk was full
		}
		return err
	})
}

// UnmapFile unmaps exactly a range that MapFile returned, of the size passed to it.
// Only a later MapFile may reuse the addresses. Dirty pages still reach the file.
func UnmapFile(addr, size uintptr) error {
	size = RoundUp(size, pageBytes)
	check(OpUnmapFile, addr, size)
	return do(OpUnmapFile, addr, size, unmapFile)
}

// Sync writes a mapped range's dirty pages to the file and waits. On Windows and
// macOS, call SyncFile afterwards for them to survive a power loss.
//
// Precondition: addr is a multiple of PageBytes; size is rounded up to pages.
func Sync(addr, size uintptr) error {
	size = RoundUp(size, pageBytes)
	check(OpSync, addr, size)
	return do(OpSync, addr, size, syncFile)
}

// SyncFile writes f's cached data and its length to disk.
func SyncFile(f *os.File) error {
	return do(OpSyncFile, 0, 0, func(_, _ uintptr) error { return f.Sync() })
}
