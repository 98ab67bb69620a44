// Mapped files: a file's bytes as memory, shared with everyone who maps it.
//
//	fresh address --MapFile--> mapped --UnmapFile--> free --MapFile--> mapped
//
// Address ranges of unmapped files are kept, without access, for later files. See
// ranges.go.

package vm

import (
	"fmt"
	"io"
	"math"
	"os"
)

// MapFile maps size bytes of f from offset as shared memory. Writes reach the file
// at Sync at the latest. f may be closed. Size need not be whole pages: bytes past
// it, up to the end of the page, are not kept.
//
// The error is io.ErrUnexpectedEOF if the file is too short, and matches
// [ErrUnsupported] on systems without mapped files. Access past the end of a file
// that was truncated later faults (SIGBUS). So does a write if the disk is full:
// allocate the file's blocks before.
//
// Precondition: offset is a multiple of OffsetBytes, size > 0.
func MapFile(f *os.File, offset int64, size uintptr, writable bool) (addr uintptr, err error) {
	if size == 0 || size > math.MaxInt-OffsetBytes() || offset < 0 || offset%int64(OffsetBytes()) != 0 || offset > math.MaxInt64-int64(size) {
		panic(fmt.Sprintf("freehold: vm: map file: %d bytes at offset %d", size, offset))
	}
	err = do(OpMapFile, 0, size, func(_, size uintptr) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if info.Mode().IsRegular() && info.Size() < offset+int64(size) {
			return io.ErrUnexpectedEOF
		}
		conn, err := f.SyscallConn()
		if err != nil {
			return err
		}
		controlErr := conn.Control(func(fd uintptr) { addr, err = mapFile(fd, offset, size, writable) })
		if controlErr != nil {
			return controlErr
		}
		return err
	})
	return addr, err
}

// UnmapFile unmaps exactly a range that MapFile returned, of the size passed to it.
// Only a later MapFile may reuse the addresses. Dirty pages still reach the file.
func UnmapFile(addr, size uintptr) error {
	size = roundUp(size, pageBytes)
	check(OpUnmapFile, addr, size)
	return do(OpUnmapFile, addr, size, unmapFile)
}

// Sync writes a mapped range's dirty pages to the file and waits. On Windows and
// macOS, call f.Sync afterwards for them to survive a power loss.
//
// Precondition: addr is a multiple of PageBytes; size is rounded up to pages.
func Sync(addr, size uintptr) error {
	size = roundUp(size, pageBytes)
	check(OpSync, addr, size)
	return do(OpSync, addr, size, syncFile)
}
